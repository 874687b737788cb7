// SPDX-License-Identifier: Apache-2.0
//
// The strategy stack of a script, as the prelude hands it over. [main thread]
#pragma once

#include <lua.hpp>

#include <vector>

#include "run/run.h"

namespace orrery::lua {

// Field `strategies` of the table at `index`: {{name = "mine", line = "gpt.lua:7", options =
// {...}}, ...}
std::vector<StrategyUse> strategies_at(lua_State* L, int index);

}  // namespace orrery::lua
