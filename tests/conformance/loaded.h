// SPDX-License-Identifier: Apache-2.0
//
// The plugin on trial, loaded by hand: with a bootstrap of our making and its tables as it gave
// them.
#pragma once

#include <memory>

#include "conformance/guarded.h"
#include "conformance/test.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "plugin/tables.h"

namespace orrery::judge {

class Loaded {
 public:
  // Loads the plugin and calls its entry. Throws Error if that fails. Once per process.
  Loaded(const Subject& subject, Fit fit);

  // What `get` answers, NULL if it has no such table.
  const void* get(const char* id, uint32_t version) const;
  bool tails_intact() const { return exports_.tail_intact(); }
  void shut_down();

  // The table of the kind, with its holes filled.
  template <class T>
  const T& table(uint32_t kind) {
    if (!table_) table_ = complete_table<T>(given(kind), "the plugin on trial");
    return *static_cast<T*>(table_.get());
  }

 private:
  const void* given(uint32_t kind) const;

  Guarded<orr_bootstrap> boot_;
  Guarded<orr_exports> exports_;
  std::shared_ptr<void> table_;
};

// The plugin as a run finds it, in front of all others of its name.
Registry& registry_with(const Subject& subject);

}  // namespace orrery::judge
