// SPDX-License-Identifier: Apache-2.0
//
// What a finished trace is examined for: mistakes that Lua itself accepts and that would train on
// without a word. [main thread]
#pragma once

#include <lua.hpp>

#include <memory>
#include <vector>

#include "program/program.h"
#include "program/state.h"

namespace orrery::lua {

// Throws Error for a parameter that gets a gradient from `loss` and that nobody trains: it is not
// frozen, no run trains it, and it is not one of `model`, the states of this run's own model.
void refuse_untrained(const Program& program, ValueId loss,
                      const std::vector<std::shared_ptr<State>>& model);

// Throws Error for a result of a comparison that nothing in the program uses, from op `first` on:
// if, and, or, not have had it. `results` are used.
void refuse_unused_conditions(lua_State* L, const Program& program, size_t first,
                              const std::vector<ValueId>& results);

}  // namespace orrery::lua
