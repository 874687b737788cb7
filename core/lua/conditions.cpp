// SPDX-License-Identifier: Apache-2.0
#include "lua/conditions.h"

#include "lua/objects.h"

namespace orrery::lua {
namespace {

const char check_key = 0;

// Passes the line to scripts/orrery/conditions.lua, which analyses its text.
void on_line(lua_State* L, lua_Debug* frame) {
  lua_getinfo(L, "Sl", frame);
  if (frame->source[0] == '=') return;
  luaL_checkstack(L, 8, "a condition");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &check_key);
  lua_pushstring(L, frame->source);
  lua_pushinteger(L, frame->currentline);
  lua_call(L, 2, 0);
}

}  // namespace

ConditionWatch::ConditionWatch(lua_State* L)
    : L(L),
      outer_(lua_gethook(L)),
      outer_mask_(lua_gethookmask(L)),
      outer_count_(lua_gethookcount(L)) {
  push_library(L, "orrery.conditions", "check");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &check_key);
  lua_sethook(L, on_line, LUA_MASKLINE, 0);
}

ConditionWatch::~ConditionWatch() { lua_sethook(L, outer_, outer_mask_, outer_count_); }

}  // namespace orrery::lua
