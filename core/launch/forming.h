// SPDX-License-Identifier: Apache-2.0
//
// While the world forms: who does not come, or freezes on the way, is named within the deadline,
// even where the backend's own library would wait for it forever.
#pragma once

#include <functional>

#include "launch/store.h"

namespace orrery {

// Runs `body`, which forms the world. Collective. Throws Error. If `body` does not return although
// a rank no longer answers, or for too long, the process ends with ORR_DEADLINE and a line that
// says so. Ranks without a common store cannot ask each other: theirs names nobody. [main thread]
void form(Store& store, const World& world, const std::function<void()>& body);

}  // namespace orrery
