// SPDX-License-Identifier: Apache-2.0
#include "lua/drawn.h"

#include <initializer_list>

#include "data/random.h"

namespace orrery::lua {
namespace {

// As math.random. upvalues: seed, purpose, ordinal, how many numbers there were.
int random_number(lua_State* L) {
  const auto seed = static_cast<uint64_t>(lua_tointeger(L, lua_upvalueindex(1)));
  const auto purpose = static_cast<uint32_t>(lua_tointeger(L, lua_upvalueindex(2)));
  const auto count = static_cast<uint64_t>(lua_tointeger(L, lua_upvalueindex(4)));
  const uint64_t bits = random_bits(seed, purpose, lua_tointeger(L, lua_upvalueindex(3)), count);
  lua_pushinteger(L, static_cast<lua_Integer>(count + 1));
  lua_replace(L, lua_upvalueindex(4));
  if (lua_gettop(L) == 0) {
    lua_pushnumber(L, static_cast<double>(bits >> 11) * 0x1p-53);
    return 1;
  }
  const lua_Integer first = lua_gettop(L) == 1 ? 1 : luaL_checkinteger(L, 1),
                    last = luaL_checkinteger(L, lua_gettop(L) == 1 ? 1 : 2);
  if (first > last) return luaL_error(L, "random: there is no integer from %I to %I", first, last);
  const uint64_t span = static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
  lua_pushinteger(
      L, static_cast<lua_Integer>(static_cast<uint64_t>(first) + (span == 0 ? bits : bits % span)));
  return 1;
}

}  // namespace

void push_random(lua_State* L, uint64_t seed, uint32_t purpose, int64_t ordinal) {
  for (const int64_t value : {static_cast<int64_t>(seed), int64_t{purpose}, ordinal, int64_t{0}})
    lua_pushinteger(L, value);
  lua_pushcclosure(L, random_number, 4);
}

}  // namespace orrery::lua
