// SPDX-License-Identifier: Apache-2.0
//
// Supervises the forming of the world: a rank that does not come, or freezes meanwhile, is named
// within the deadline, even if the backend's own library would wait for it forever.
#pragma once

#include <functional>

#include "launch/store.h"

namespace orrery {

// Runs `body`, which forms the world. Collective. Throws Error. If `body` does not return because a
// rank no longer answers, or takes too long, the process ends with ORR_DEADLINE and prints a line
// that says so. Ranks without a shared store cannot ask each other: their line names no rank.
// [main thread]
void form(Store& store, const World& world, const std::function<void()>& body);

}  // namespace orrery
