// SPDX-License-Identifier: Apache-2.0
//
// Lua values between ranks: nil, booleans, numbers, strings and tables of them. A value travels as
// one letter and what the letter asks for: b (byte), i and d (8 bytes), s (length, bytes), t
// (number of pairs, then key and value of each).
#include <algorithm>
#include <cstring>

#include "lua/api.h"
#include "lua/objects.h"
#include "lua/world.h"
#include "run/runtime.h"

namespace orrery::lua {
namespace {

constexpr int most_levels = 100;

template <class T>
void append(std::string& bytes, char letter, T value) {
  bytes += letter;
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void encode(lua_State* L, int index, int level, std::string& bytes);

void encode_table(lua_State* L, int index, int level, std::string& bytes) {
  if (level > most_levels)
    fail(ORR_INVALID, "the value is nested deeper than {} levels, or contains itself", most_levels);
  luaL_checkstack(L, 4, "the value is too deeply nested");
  const size_t head = bytes.size();
  uint64_t pairs = 0;
  append(bytes, 't', pairs);
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), ++pairs) {
    encode(L, lua_gettop(L) - 1, level, bytes);
    encode(L, lua_gettop(L), level, bytes);
  }
  std::memcpy(bytes.data() + head + 1, &pairs, sizeof pairs);
}

void encode(lua_State* L, int index, int level, std::string& bytes) {
  switch (lua_type(L, index)) {
    case LUA_TNIL: bytes += 'n'; return;
    case LUA_TBOOLEAN: return append(bytes, 'b', static_cast<char>(lua_toboolean(L, index)));
    case LUA_TNUMBER:
      return lua_isinteger(L, index) ? append(bytes, 'i', lua_tointeger(L, index))
                                     : append(bytes, 'd', lua_tonumber(L, index));
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(L, index, &size);
      append(bytes, 's', uint64_t{size});
      bytes.append(text, size);
      return;
    }
    case LUA_TTABLE: return encode_table(L, index, level + 1, bytes);
    default:
      fail(ORR_INVALID,
           "{} cannot travel between ranks: only nil, booleans, numbers, strings and tables do",
           describe(L, index));
  }
}

template <class T>
T take(const char*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

// REQUIRES: what `encode` has written.
void decode(lua_State* L, const char*& at) {
  luaL_checkstack(L, 4, "the value is too deeply nested");
  switch (*at++) {
    case 'b': return lua_pushboolean(L, take<char>(at));
    case 'i': return lua_pushinteger(L, take<lua_Integer>(at));
    case 'd': return lua_pushnumber(L, take<lua_Number>(at));
    case 's': {
      const auto size = take<uint64_t>(at);
      lua_pushlstring(L, at, size);
      at += size;
      return;
    }
    case 't': {
      lua_newtable(L);
      for (auto pairs = take<uint64_t>(at); pairs > 0; --pairs) {
        decode(L, at);
        decode(L, at);
        lua_rawset(L, -3);
      }
      return;
    }
    default: return lua_pushnil(L);
  }
}

// All ranks' bytes, one after another.
HostTensor gather_bytes(lua_State* L, const std::string& bytes, const std::string& name) {
  HostTensor mine = HostTensor::make({ORR_U8, {static_cast<int64_t>(bytes.size())}});
  std::copy(bytes.begin(), bytes.end(), mine.data<char>());  // none has no address
  CollectiveCall call = call_at(L, Collective::allgather);
  call.tensors = {mine};
  call.name = name;
  return post(Runtime::get().comm(), std::move(call)).wait().tensors.front();
}

// Only the root's value travels, but its kind is known to the root alone: the others bring no
// bytes.
int broadcast_object(lua_State* L) {
  WorldComm& comm = Runtime::get().comm();
  const int group = world_at(L).group, size = comm.size(group);
  const auto root = runtime_options().plan_only ? 0 : option_int(L, 3, "root");
  if (root < 0 || root >= size) fail(ORR_INVALID, "root is {}: ranks are 0..{}", root, size - 1);
  std::string bytes;
  if (comm.rank(group) == root) encode(L, 2, 0, bytes);
  const HostTensor all = gather_bytes(L, bytes, fmt::format("object of rank {}", root));
  const char* at = all.data<char>();
  decode(L, at);
  return 1;
}

int allgather_object(lua_State* L) {
  std::string bytes;
  encode(L, 2, 0, bytes);
  const HostTensor all = gather_bytes(L, bytes, "objects");
  const char* at = all.data<char>();
  const char* end = at + all.bytes->size();
  lua_newtable(L);
  for (lua_Integer i = 1; at < end; ++i) {
    decode(L, at);
    lua_rawseti(L, -2, i);
  }
  return 1;
}

}  // namespace

std::vector<Api> object_api() {
  const Arg self{"self", "World"}, value{"value", "any", "nil"};
  return {
      {"World",
       "broadcast_object",
       "any",
       "All ranks get the root's Lua value: nil, a boolean, a number, a string or a table of "
       "these.",
       broadcast_object,
       {self, value, {"options", "options", "nil"}},
       {{"root", "integer", "0", "rank whose value all get"}}},
      {"World",
       "allgather_object",
       "any[]",
       "A list of all ranks' Lua values, in rank order.",
       allgather_object,
       {self, value},
       {}},
  };
}

}  // namespace orrery::lua
