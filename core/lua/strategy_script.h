// SPDX-License-Identifier: Apache-2.0
//
// The strategy stack of a script, as the library hands it over, and strategy/1 written in Lua: a
// table as a plugin's. [main thread]
#pragma once

#include <vector>

#include "lua/layer.h"
#include "run/run.h"

namespace orrery::lua {

// Field `strategies` of a specification: {{name = "mine", line = "gpt.lua:7", options = {...},
// script = what strategy.define was given, or nil}, ...}
std::vector<StrategyUse> strategies_in(const Table& given);

}  // namespace orrery::lua
