// SPDX-License-Identifier: Apache-2.0
//
// Whether something that is done again and again keeps memory or files.
#pragma once

#include <functional>
#include <string>

namespace orrery::judge {

// Runs `round` until it has settled, then many times more. "" if nothing grew, else what each round
// keeps: "24.0 bytes".
std::string growth(const std::function<void()>& round);

}  // namespace orrery::judge
