// SPDX-License-Identifier: Apache-2.0
#include "base/name.h"

#include <mutex>
#include <unordered_set>

namespace orrery {

Name::Name(const std::string& text) {
  if (text.empty()) return;
  static auto& known = *new std::unordered_set<std::string>;  // outlives all other objects
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  text_ = &*known.insert(text).first;
}

}  // namespace orrery
