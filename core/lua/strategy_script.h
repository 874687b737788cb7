// SPDX-License-Identifier: Apache-2.0
//
// Reads the strategy stack that the Lua library passes on, and makes for each strategy written in
// Lua a table strategy/1 like that of a plugin. [main thread]
#pragma once

#include <vector>

#include "lua/layer.h"
#include "run/run.h"

namespace orrery::lua {

// The field `strategies` of a specification: {{name = "mine", line = "gpt.lua:7", options = {...},
// script = the argument of strategy.define, or nil}, ...}
std::vector<StrategyUse> strategies_in(const Table& given);

}  // namespace orrery::lua
