// SPDX-License-Identifier: Apache-2.0
//
// What a finished trace is examined for: mistakes that Lua itself accepts and that would train on
// without a word. [main thread]
#pragma once

#include <memory>
#include <vector>

#include "program/program.h"
#include "program/state.h"

namespace orrery::lua {

// Throws Error for a parameter that gets a gradient from `loss` and that nobody trains: it is not
// frozen, no run trains it, and it is not one of `model`, the states of this run's own model.
void refuse_untrained(const Program& program, ValueId loss,
                      const std::vector<std::shared_ptr<State>>& model);

}  // namespace orrery::lua
