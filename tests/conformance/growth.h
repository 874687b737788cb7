// SPDX-License-Identifier: Apache-2.0
//
// Whether something that is done again and again keeps memory or files.
#pragma once

#include <functional>
#include <string>

namespace orrery::judge {

// Runs `round` until it has settled, then many times more. "" if nothing grew, else what each round
// keeps: "24.0 bytes". Rounds that grew are done again, up to three times in all; `attempts`: at
// least as often, for rounds that ranks do together, of which each sees growth of its own.
std::string growth(const std::function<void()>& round, int attempts = 1);

}  // namespace orrery::judge
