// SPDX-License-Identifier: Apache-2.0
//
// strategy/1 written in Lua: a table as a plugin's.
#pragma once

#include <orrery/strategy.h>
#include <lua.hpp>

#include <memory>

namespace orrery::lua {

// The table at `index`: {class = "exact", provides =, requires =, conflicts = comma-separated
// words, transform = function(draft), transform_forward =, predict = function(query) -> bytes}. The
// three functions may be missing. Errors of theirs become statuses with their Lua line. [main
// thread] to make and to call; `predict` may come from another while the main thread waits.
std::shared_ptr<const orr_strategy_api> script_strategy(lua_State* L, int index);

}  // namespace orrery::lua
