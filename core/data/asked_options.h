// SPDX-License-Identifier: Apache-2.0
//
// Options for a plugin that does not list which it has: those that it asks for.
#pragma once

#include <orrery/strategy.h>

#include <set>

#include "program/types.h"

namespace orrery {

class AskedOptions {
 public:
  explicit AskedOptions(const Attrs& options) : options_(options) {}
  // REQUIRES: this object outlives the table. [main thread]
  orr_options table() const;
  // What a call that had the table returned. Throws Error for an option that the plugin has asked
  // for as another type, else for the status, else for an option that it has not asked for.
  void check_call(orr_status* status, const std::string& subject) const;

 private:
  template <class T>
  static const T* ask(const void* self, const char* name, const char* expected);

  const Attrs& options_;
  mutable std::set<std::string> asked_;
  mutable std::string wrong_;  // what an option of another type should be
};

}  // namespace orrery
