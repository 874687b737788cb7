// SPDX-License-Identifier: Apache-2.0
//
// HostTensor in Lua: made from lists and files, read back as lists and numbers.
#include "lua/host_tensor.h"

#include <cstring>

#include "lua/api.h"
#include "lua/objects.h"
#include "program/elements.h"

namespace orrery::lua {
namespace {

// The dims of a nested list, by its first elements; is_real turns true at the first float.
void measure(lua_State* L, int index, Dims& dims) {
  if (dims.size() == ORR_MAX_RANK)
    fail(ORR_INVALID, "tensor: the list is nested deeper than {} levels, or contains itself",
         static_cast<int>(ORR_MAX_RANK));
  dims.push_back(static_cast<int64_t>(lua_rawlen(L, index)));
  luaL_checkstack(L, 4, "tensor: too deeply nested");
  lua_rawgeti(L, index, 1);
  if (lua_istable(L, -1)) measure(L, lua_gettop(L), dims);
  lua_pop(L, 1);
}

// Of `depth` levels; what lies deeper is no number.
bool all_integers(lua_State* L, int index, size_t depth) {
  const auto size = static_cast<lua_Integer>(lua_rawlen(L, index));
  bool integers = true;
  for (lua_Integer i = 1; i <= size && integers; ++i) {
    lua_rawgeti(L, index, i);
    integers = depth > 1 && lua_istable(L, -1) ? all_integers(L, lua_gettop(L), depth - 1)
                                               : lua_isinteger(L, -1) != 0;
    lua_pop(L, 1);
  }
  return integers;
}

void write_number(lua_State* L, int32_t dtype, std::byte* place) {
  if (lua_isboolean(L, -1)) return write_element(dtype, place, lua_toboolean(L, -1));
  if (dtype == ORR_I64) {
    const int64_t value = to_integer(L, -1, "tensor: element");
    std::memcpy(place, &value, sizeof value);
    return;
  }
  write_element(dtype, place, to_number(L, -1, "tensor: element"));
}

void fill(lua_State* L, int index, const Type& type, size_t depth, std::byte*& place) {
  const auto size = static_cast<int64_t>(lua_rawlen(L, index));
  if (size != type.dims[depth]) {
    fail(ORR_INVALID, "tensor: a list of {} stands where the first of its level has {}", size,
         type.dims[depth]);
  }
  for (lua_Integer i = 1; i <= size; ++i) {
    lua_rawgeti(L, index, i);
    if (depth + 1 < type.dims.size()) {
      if (!lua_istable(L, -1))
        fail(ORR_INVALID, "tensor: {} stands where a list should", describe(L, -1));
      fill(L, lua_gettop(L), type, depth + 1, place);
    } else {
      write_number(L, type.dtype, place);
      place += orr_dtype_bytes(type.dtype);
    }
    lua_pop(L, 1);
  }
}

void push_list(lua_State* L, const HostTensor& x, size_t depth, int64_t& at) {
  if (depth == x.type.dims.size()) return push_element(L, x, at++);
  luaL_checkstack(L, 4, "tolist");
  lua_createtable(L, static_cast<int>(x.type.dims[depth]), 0);
  for (int64_t i = 1; i <= x.type.dims[depth]; ++i) {
    push_list(L, x, depth + 1, at);
    lua_rawseti(L, -2, i);
  }
}

int tensor(lua_State* L) {
  const int32_t dtype = lua_isnil(L, 2) ? 0 : to_dtype(L, 2);
  if (lua_istable(L, 1)) {
    push(L, Host{host_from_table(L, 1, dtype)});
    return 1;
  }
  HostTensor x = HostTensor::make({dtype ? dtype : lua_isinteger(L, 1) ? ORR_I64 : ORR_F32, {}});
  lua_settop(L, 1);
  write_number(L, x.type.dtype, x.data<std::byte>());
  push(L, Host{x});
  return 1;
}

int tolist(lua_State* L) {
  int64_t at = 0;
  push_list(L, check<Host>(L, 1).value, 0, at);
  return 1;
}

int item(lua_State* L) {
  const HostTensor& x = check<Host>(L, 1).value;
  if (x.type.elements() != 1) {
    fail(ORR_INVALID, "item: the tensor is {}, one element expected; use :tolist()",
         to_string(x.type));
  }
  push_element(L, x, 0);
  return 1;
}

int load(lua_State* L) {
  push(L, Host{load_npy(to_text(L, 1, "path"))});
  return 1;
}

int save(lua_State* L) {
  save_npy(to_text(L, 2, "path"), check<Host>(L, 1).value);
  return 0;
}

int show(lua_State* L) {
  const HostTensor& x = check<Host>(L, 1).value;
  std::string text = "HostTensor " + to_string(x.type);
  const int64_t shown = std::min<int64_t>(x.type.elements(), 8);
  for (int64_t i = 0; i < shown; ++i) {
    text += i ? ", " : " {";
    push_element(L, x, i);
    text += luaL_tolstring(L, -1, nullptr);
  }
  text += shown < x.type.elements() ? ", ...}" : shown ? "}" : "";
  push_text(L, text);
  return 1;
}

bool properties(lua_State* L, const std::string& key) {
  const Type& type = check<Host>(L, 1).value.type;
  if (key == "shape") return push_shape(L, type.dims), true;
  if (key == "dtype") return push_text(L, dtype_name(type.dtype)), true;
  return false;
}

}  // namespace

HostTensor host_from_table(lua_State* L, int index, int32_t dtype) {
  index = lua_absindex(L, index);
  Type type;
  measure(L, index, type.dims);
  type.dtype = dtype ? dtype : all_integers(L, index, type.dims.size()) ? ORR_I64 : ORR_F32;
  HostTensor x = HostTensor::make(type);
  auto* place = x.data<std::byte>();
  fill(L, index, type, 0, place);
  return x;
}

HostTensor host_at(lua_State* L, int index) {
  if (const auto* host = test<Host>(L, index)) return host->value;
  if (lua_istable(L, index)) return host_from_table(L, index, 0);
  if (lua_type(L, index) != LUA_TNUMBER) {
    fail(ORR_INVALID, "{} given, expected a HostTensor, a number or a list", describe(L, index));
  }
  HostTensor x = HostTensor::make({lua_isinteger(L, index) ? ORR_I64 : ORR_F32, {}});
  lua_pushvalue(L, index);
  write_number(L, x.type.dtype, x.data<std::byte>());
  lua_pop(L, 1);
  return x;
}

void push_element(lua_State* L, const HostTensor& x, int64_t i) {
  const int32_t dtype = x.type.dtype;
  const std::byte* place = x.data<std::byte>() + i * orr_dtype_bytes(dtype);
  if (dtype == ORR_BOOL) return lua_pushboolean(L, read_element(dtype, place) != 0);
  if (is_real(dtype)) return lua_pushnumber(L, read_element(dtype, place));
  if (dtype == ORR_I64) return lua_pushinteger(L, x.data<int64_t>()[i]);
  lua_pushinteger(L, static_cast<lua_Integer>(read_element(dtype, place)));
}

std::vector<Api> host_api() {
  const char* h = "orrery.HostTensor";
  return {
      {"orrery",
       "tensor",
       h,
       "A concrete tensor from a number or nested lists; integers give i64, other numbers f32.",
       tensor,
       {{"values", "any"}, {"dtype", "dtype", "nil"}},
       {}},
      {"orrery", "load", h, "Reads a .npy file.", load, {{"path", "string"}}, {}},
      {"HostTensor",
       "tolist",
       "table",
       "The elements as nested lists.",
       tolist,
       {{"self", "HostTensor"}},
       {}},
      {"HostTensor", "item", "number", "The only element.", item, {{"self", "HostTensor"}}, {}},
      {"HostTensor",
       "save",
       "",
       "Writes a .npy file.",
       save,
       {{"self", "HostTensor"}, {"path", "string"}},
       {}},
      {"HostTensor",
       "__tostring",
       "string",
       "Type and first elements.",
       show,
       {{"a", "any"}, {"b", "any", "nil"}},
       {}},
  };
}

void define_host_class(lua_State* L) {
  define_class<Host>(L, {"HostTensor"}, properties, {"shape", "dtype"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
