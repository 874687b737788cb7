// SPDX-License-Identifier: Apache-2.0
//
// Checks of a finished trace for mistakes that Lua accepts and that would silently give a wrong
// training. [main thread]
#pragma once

#include <lua.hpp>

#include <memory>
#include <vector>

#include "program/program.h"
#include "program/state.h"

namespace orrery::lua {

// Throws Error for a parameter that would get a gradient from `loss` but is not trained: it is not
// frozen, no run trains it, and it is not one of `model`, the states of this run's own model.
void refuse_untrained(const Program& program, ValueId loss,
                      const std::vector<std::shared_ptr<State>>& model);

// Throws Error for a comparison, from op `first` on, whose result nothing in the program uses: the
// script has probably used it in if, and, or, not. `results` count as used.
void refuse_unused_conditions(lua_State* L, const Program& program, size_t first,
                              const std::vector<ValueId>& results);

}  // namespace orrery::lua
