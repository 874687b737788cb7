// SPDX-License-Identifier: Apache-2.0
#include "lua/stack.h"

#include "lua/api.h"
#include "lua/objects.h"
#include "lua/strategy_script.h"

namespace orrery::lua {
namespace {

Attr attr_at(lua_State* L, int index, const std::string& what) {
  if (lua_isboolean(L, index)) return static_cast<int64_t>(lua_toboolean(L, index));
  if (lua_isinteger(L, index)) return static_cast<int64_t>(lua_tointeger(L, index));
  if (lua_type(L, index) == LUA_TNUMBER) return lua_tonumber(L, index);
  if (lua_type(L, index) == LUA_TSTRING) return to_text(L, index, what);
  if (lua_istable(L, index)) return to_integers(L, index, what);
  fail(ORR_INVALID, "{} is {}, expected a number, a string or a list of integers", what,
       describe(L, index));
}

// A schedule of the script's own: function(stage, stages, microbatches) -> {"F0", "B0", ...}.
auto schedule_at(lua_State* L, int index) {
  return [order = Function(L, index)](int stage, int stages, int microbatches) {
    lua_State* state = order.state();
    const int top = lua_gettop(state);
    order.push();
    for (int number : {stage, stages, microbatches}) lua_pushinteger(state, number);
    protected_call(state, 3, 1);
    std::vector<std::string> cells;
    for (lua_Integer i = 1; lua_rawgeti(state, top + 1, i) != LUA_TNIL; ++i) {
      cells.push_back(to_text(state, -1, "a cell of the schedule"));
      lua_pop(state, 1);
    }
    lua_settop(state, top);
    return cells;
  };
}

// What strategy.define of the Lua library hands over.
void use_script(lua_State* L, int index, StrategyUse& use) {
  use.script = script_strategy(L, index);
  if (lua_getfield(L, index, "schedule") != LUA_TNIL) use.order = schedule_at(L, lua_gettop(L));
  lua_pop(L, 1);
}

}  // namespace

std::vector<StrategyUse> strategies_at(lua_State* L, int index) {
  std::vector<StrategyUse> uses;
  lua_getfield(L, index, "strategies");
  const int list = lua_gettop(L);
  for (lua_Integer i = 1; lua_rawgeti(L, list, i) != LUA_TNIL; ++i) {
    const int entry = lua_gettop(L);
    StrategyUse use{option_text(L, entry, "name"), {}, option_text(L, entry, "line")};
    lua_getfield(L, entry, "options");
    for (const std::string& name : sorted_keys(L, -1)) {
      lua_getfield(L, entry + 1, name.c_str());
      if (name == "schedule" && lua_isfunction(L, -1)) {
        use.order = schedule_at(L, lua_gettop(L));
        use.options[name] = std::string("script");
      } else {
        use.options[name] = attr_at(L, -1, use.name + ": " + name);
      }
      lua_pop(L, 1);
    }
    if (lua_getfield(L, entry, "script") == LUA_TTABLE) use_script(L, entry + 2, use);
    uses.push_back(std::move(use));
    lua_settop(L, list);
  }
  lua_settop(L, list - 1);
  return uses;
}

}  // namespace orrery::lua
