// SPDX-License-Identifier: Apache-2.0
#include "run/counts.h"

#include <map>

namespace orrery {
namespace {

using AnyState = std::weak_ptr<const State>;

std::map<AnyState, AnyState, std::owner_less<>>& counts() {
  static std::map<AnyState, AnyState, std::owner_less<>> all;
  return all;
}

}  // namespace

void note_count(const std::shared_ptr<State>& count, const std::shared_ptr<State>& of) {
  counts()[count] = of;
}

std::shared_ptr<const State> counted_by(const std::shared_ptr<State>& count) {
  const auto found = counts().find(count);
  return found == counts().end() ? nullptr : found->second.lock();
}

}  // namespace orrery
