// SPDX-License-Identifier: Apache-2.0
//
// Converts plain values between Lua and C++: numbers, lists, shapes.
#include <algorithm>

#include "lua/layer.h"

namespace orrery::lua {
namespace {

// shape[-1] is the last dim.
int shape_index(lua_State* L) {
  if (!lua_isinteger(L, 2)) return 0;
  const lua_Integer at = lua_tointeger(L, 2);
  const auto size = static_cast<lua_Integer>(lua_rawlen(L, 1));
  return at < 0 && -at <= size ? (lua_rawgeti(L, 1, size + 1 + at), 1) : 0;
}

int shape_tostring(lua_State* L) {
  push_text(L, to_string(to_integers(L, 1, "shape")));
  return 1;
}

}  // namespace

std::string describe(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return "nil";
  if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING) {
    std::string name = lua_tostring(L, -1);
    lua_pop(L, 1);
    return "a " + name;
  }
  if (lua_type(L, index) == LUA_TSTRING) return fmt::format("'{}'", lua_tostring(L, index));
  if (lua_type(L, index) == LUA_TNUMBER) {
    return lua_isinteger(L, index) ? fmt::format("{}", lua_tointeger(L, index))
                                   : fmt::format("{}", lua_tonumber(L, index));
  }
  return std::string("a ") + luaL_typename(L, index);
}

int64_t to_integer(lua_State* L, int index, const std::string& what) {
  int exact = 0;
  const lua_Integer value =
      lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &exact) : 0;
  if (!exact) fail(ORR_INVALID, "{} is {}, expected an integer", what, describe(L, index));
  return value;
}

double to_number(lua_State* L, int index, const std::string& what) {
  if (lua_type(L, index) != LUA_TNUMBER) {
    fail(ORR_INVALID, "{} is {}, expected a number", what, describe(L, index));
  }
  return lua_tonumber(L, index);
}

double exact_number(lua_State* L, int index) {
  const double number = lua_tonumber(L, index);
  const bool whole = lua_isinteger(L, index) != 0;
  // 2^63 is no integer of Lua's, but the largest of them would become it.
  if (whole && (number >= 0x1p63 || static_cast<lua_Integer>(number) != lua_tointeger(L, index)))
    fail(ORR_INVALID,
         "the number {} would be rounded to {:.0f}; give it as orrery.tensor(number, 'i64')",
         lua_tointeger(L, index), number);
  return number;
}

std::string to_text(lua_State* L, int index, const std::string& what) {
  if (lua_type(L, index) != LUA_TSTRING) {
    fail(ORR_INVALID, "{} is {}, expected a string", what, describe(L, index));
  }
  size_t size = 0;
  const char* text = lua_tolstring(L, index, &size);
  return std::string(text, size);
}

std::vector<int64_t> to_integers(lua_State* L, int index, const std::string& what) {
  if (lua_type(L, index) != LUA_TTABLE) return {to_integer(L, index, what)};
  index = lua_absindex(L, index);
  if (const std::string fault = list_fault(L, index); !fault.empty())
    fail(ORR_INVALID, "{} is {}, expected a list of integers", what, fault);
  std::vector<int64_t> list(lua_rawlen(L, index));
  for (size_t i = 0; i < list.size(); ++i) {
    lua_rawgeti(L, index, static_cast<lua_Integer>(i) + 1);
    list[i] = to_integer(L, -1, fmt::format("{}[{}]", what, i + 1));
    lua_pop(L, 1);
  }
  return list;
}

std::string named_key(lua_State* L, int index) {
  index = lua_absindex(L, index);
  const auto n = static_cast<lua_Integer>(lua_rawlen(L, index));
  std::string first;
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    const bool place =
        lua_isinteger(L, -2) && lua_tointeger(L, -2) >= 1 && lua_tointeger(L, -2) <= n;
    if (place) continue;
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    if (first.empty() || key < first) first = key;
  }
  return first;
}

std::string list_fault(lua_State* L, int index) {
  index = lua_absindex(L, index);
  const auto n = static_cast<lua_Integer>(lua_rawlen(L, index));
  for (lua_Integer i = 1; i <= n; ++i) {
    const bool hole = lua_rawgeti(L, index, i) == LUA_TNIL;
    lua_pop(L, 1);
    if (hole) return fmt::format("a list with nothing at place {}", i);
  }
  const std::string key = named_key(L, index);
  if (key.empty()) return "";
  const bool further = key.find_first_not_of("0123456789") == key.npos && key != "0";
  return further ? fmt::format("a list with nothing at place {}", n + 1)
                 : fmt::format("a table with the key '{}'", key);
}

int32_t to_dtype(lua_State* L, int index) {
  const std::string name = to_text(L, index, "dtype");
  const int32_t dtype = dtype_from_name(name);
  if (!dtype) {
    fail(ORR_INVALID, "unknown dtype '{}': one of f32, f64, bf16, f16, i32, i64, u8, bool", name);
  }
  return dtype;
}

int64_t to_dim(int64_t dim, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (dim == 0 || dim > n || dim < -n) {
    fail(ORR_INVALID, "dim {} does not exist: the tensor has {} dims, counted 1..{} or -1..-{}",
         dim, n, n, n);
  }
  return dim > 0 ? dim - 1 : n + dim;
}

Attr attr_at(lua_State* L, int index, const std::string& what) {
  if (lua_isboolean(L, index)) return static_cast<int64_t>(lua_toboolean(L, index));
  if (lua_isinteger(L, index)) return static_cast<int64_t>(lua_tointeger(L, index));
  if (lua_type(L, index) == LUA_TNUMBER) return lua_tonumber(L, index);
  if (lua_type(L, index) == LUA_TSTRING) return to_text(L, index, what);
  if (lua_istable(L, index)) return to_integers(L, index, what);
  fail(ORR_INVALID, "{} is {}, expected a number, a string or a list of integers", what,
       describe(L, index));
}

std::vector<std::string> texts_at(lua_State* L, int index, const std::string& what) {
  return list_at(L, index, [&](lua_State*, int at) { return to_text(L, at, what); });
}

void push_text(lua_State* L, const std::string& text) {
  lua_pushlstring(L, text.data(), text.size());
}

void push_shape(lua_State* L, const Dims& dims) {
  push_list(L, dims);
  if (luaL_newmetatable(L, "shape")) {
    lua_pushcfunction(L, shape_index);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, shape_tostring);
    lua_setfield(L, -2, "__tostring");
  }
  lua_setmetatable(L, -2);
}

std::vector<std::string> sorted_keys(lua_State* L, int index) {
  index = lua_absindex(L, index);
  std::vector<std::string> keys;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING) keys.emplace_back(lua_tostring(L, -1));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace orrery::lua
