// SPDX-License-Identifier: Apache-2.0
//
// pairs and next in an order that all ranks share: numbers, then strings, then booleans, sorted.
#include <algorithm>

#include "lua/environment.h"

namespace orrery::lua {
namespace {

int rank_of(lua_State* L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNUMBER: return 0;
    case LUA_TSTRING: return 1;
    case LUA_TBOOLEAN: return 2;
    default: return 3;
  }
}

// Whether key a comes before key b. REQUIRES: both are sortable.
bool before(lua_State* L, int a, int b) {
  const int ra = rank_of(L, a), rb = rank_of(L, b);
  if (ra != rb) return ra < rb;
  if (ra == 2) return !lua_toboolean(L, a) && lua_toboolean(L, b);
  return lua_compare(L, a, b, LUA_OPLT);
}

// Pushes the list of keys of the table at 1.
void push_keys(lua_State* L) {
  lua_newtable(L);
  const int list = lua_gettop(L);
  lua_Integer count = 0;
  int unsortable = 0;
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    lua_pop(L, 1);
    if (rank_of(L, -1) == 3) ++unsortable;
    lua_pushvalue(L, -1);
    lua_rawseti(L, list, ++count);
  }
  if (unsortable && count > 1) {
    fail(ORR_INVALID,
         "this table has keys that are neither numbers nor strings: they have no order that all "
         "ranks share; keep a list beside it");
  }
}

// Heap sort over a Lua list: stays inside Lua's stack whatever the size.
void sift(lua_State* L, int list, lua_Integer root, lua_Integer end) {
  for (lua_Integer child = 2 * root; child <= end; root = child, child = 2 * root) {
    lua_rawgeti(L, list, child);
    if (child < end) {
      lua_rawgeti(L, list, child + 1);
      if (before(L, -2, -1)) {
        ++child;
        lua_replace(L, -2);
      } else {
        lua_pop(L, 1);
      }
    }
    lua_rawgeti(L, list, root);
    if (!before(L, -1, -2)) {
      lua_pop(L, 2);
      return;
    }
    lua_rawseti(L, list, child);
    lua_rawseti(L, list, root);
  }
}

void sort(lua_State* L, int list) {
  const auto size = static_cast<lua_Integer>(lua_rawlen(L, list));
  for (lua_Integer root = size / 2; root >= 1; --root) sift(L, list, root, size);
  for (lua_Integer end = size; end > 1; --end) {
    lua_rawgeti(L, list, 1);
    lua_rawgeti(L, list, end);
    lua_rawseti(L, list, 1);
    lua_rawseti(L, list, end);
    sift(L, list, 1, end - 1);
  }
}

// upvalues: the sorted keys, the place reached.
int next_key(lua_State* L) {
  for (;;) {
    const lua_Integer at = lua_tointeger(L, lua_upvalueindex(2)) + 1;
    lua_pushinteger(L, at);
    lua_replace(L, lua_upvalueindex(2));
    if (lua_rawgeti(L, lua_upvalueindex(1), at) == LUA_TNIL) return 1;
    lua_pushvalue(L, -1);
    lua_rawget(L, 1);
    if (!lua_isnil(L, -1)) return 2;
    lua_pop(L, 2);
  }
}

int sorted_pairs(lua_State* L) {
  return guard(L, [](lua_State* state) {
    luaL_checkany(state, 1);
    if (luaL_getmetafield(state, 1, "__pairs") != LUA_TNIL) {
      lua_pushvalue(state, 1);
      lua_call(state, 1, 3);
      return 3;
    }
    luaL_checktype(state, 1, LUA_TTABLE);
    push_keys(state);
    sort(state, lua_gettop(state));
    lua_pushinteger(state, 0);
    lua_pushcclosure(state, next_key, 2);
    lua_pushvalue(state, 1);
    lua_pushnil(state);
    return 3;
  });
}

// next(t, key): the smallest key above `key`.
int sorted_next(lua_State* L) {
  return guard(L, [](lua_State* state) {
    luaL_checktype(state, 1, LUA_TTABLE);
    lua_settop(state, 2);
    push_keys(state);
    sort(state, 3);
    const auto size = static_cast<lua_Integer>(lua_rawlen(state, 3));
    lua_Integer at = 1;
    if (!lua_isnil(state, 2)) {
      for (bool found = false; at <= size && !found; ++at) {
        lua_rawgeti(state, 3, at);
        found = lua_rawequal(state, -1, 2);
        lua_pop(state, 1);
      }
    }
    if (lua_rawgeti(state, 3, at) == LUA_TNIL) return 1;
    lua_pushvalue(state, -1);
    lua_rawget(state, 1);
    return 2;
  });
}

}  // namespace

void set_sorted_iteration(lua_State* L) {
  lua_pushcfunction(L, sorted_pairs);
  lua_setfield(L, -2, "pairs");
  lua_pushcfunction(L, sorted_next);
  lua_setfield(L, -2, "next");
}

}  // namespace orrery::lua
