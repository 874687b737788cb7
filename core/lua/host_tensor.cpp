// SPDX-License-Identifier: Apache-2.0
//
// HostTensor in Lua: making it from lists and files, and reading it as lists and numbers.
#include <cstring>
#include <utility>

#include "lua/call.h"
#include "program/eight_bits.h"
#include "program/elements.h"

namespace orrery::lua {
namespace {

// Finds the dims of a nested list, by its first elements.
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

void write_number(lua_State* L, int32_t dtype, std::byte* place) {
  if (lua_isboolean(L, -1)) return write_element(dtype, place, lua_toboolean(L, -1));
  if (is_any_real(dtype) || dtype == ORR_BOOL)
    return write_element(dtype, place, to_number(L, -1, "tensor: element"));
  const int64_t value = to_integer(L, -1, "tensor: element");
  if (dtype == ORR_I64) {
    std::memcpy(place, &value, sizeof value);
    return;
  }
  if (dtype == ORR_I32 ? !std::in_range<int32_t>(value) : !std::in_range<uint8_t>(value))
    fail(ORR_INVALID, "tensor: the value {} does not fit into {}; ask for a wider dtype", value,
         dtype_name(dtype));
  write_element(dtype, place, static_cast<double>(value));
}

// Calls visit() for each number of the nested list, with the number on top of the stack, as long as
// it returns true.
template <class Visit>
bool walk(lua_State* L, int index, const Dims& dims, size_t depth, Visit&& visit) {
  if (const std::string fault = list_fault(L, index); !fault.empty())
    fail(ORR_INVALID, "tensor: {} stands where a list of numbers should", fault);
  const auto size = static_cast<int64_t>(lua_rawlen(L, index));
  if (size != dims[depth]) {
    fail(ORR_INVALID, "tensor: a list of {} stands where the first of its level has {}", size,
         dims[depth]);
  }
  bool on = true;
  for (lua_Integer i = 1; i <= size && on; ++i) {
    lua_rawgeti(L, index, i);
    const bool inner = depth + 1 < dims.size();
    if (inner && !lua_istable(L, -1))
      fail(ORR_INVALID, "tensor: {} stands where a list should", describe(L, -1));
    on = inner ? walk(L, lua_gettop(L), dims, depth + 1, visit) : visit();
    lua_pop(L, 1);
  }
  return on;
}

void push_nested(lua_State* L, const HostTensor& x, size_t depth, int64_t& at) {
  if (depth == x.type.dims.size()) return push_element(L, x, at++);
  luaL_checkstack(L, 4, "tolist");
  lua_createtable(L, static_cast<int>(x.type.dims[depth]), 0);
  for (int64_t i = 1; i <= x.type.dims[depth]; ++i) {
    push_nested(L, x, depth + 1, at);
    lua_rawseti(L, -2, i);
  }
}

// A 0-d tensor of the number at `index`.
HostTensor host_from_number(lua_State* L, int index, int32_t dtype) {
  HostTensor x = HostTensor::make({dtype                     ? dtype
                                   : lua_isinteger(L, index) ? ORR_I64
                                                             : ORR_F32,
                                   {}});
  lua_pushvalue(L, index);
  write_number(L, x.type.dtype, x.data<std::byte>());
  lua_pop(L, 1);
  return x;
}

HostTensor tensor(lua_State* L, Index values, Index dtype_name) {
  const int32_t dtype = lua_isnil(L, dtype_name) ? 0 : to_dtype(L, dtype_name);
  return lua_istable(L, values) ? host_from_table(L, values, dtype)
                                : host_from_number(L, values, dtype);
}

Pushed tolist(lua_State* L, Host& x) {
  int64_t at = 0;
  push_nested(L, x.value, 0, at);
  return {1};
}

Pushed item(lua_State* L, Host& x) {
  if (x.value.type.elements() != 1) {
    fail(ORR_INVALID, "item: the tensor is {}, one element expected; use :tolist()",
         to_string(x.value.type));
  }
  push_element(L, x.value, 0);
  return {1};
}

std::string bytes_of(Host& x) { return {x.value.data<char>(), x.value.bytes->size()}; }

std::string show(lua_State* L, Host& host) {
  const HostTensor& x = host.value;
  std::string text = "HostTensor " + to_string(x.type);
  const int64_t shown = std::min<int64_t>(x.type.elements(), 8);
  for (int64_t i = 0; i < shown; ++i) {
    text += i ? ", " : " {";
    push_element(L, x, i);
    text += luaL_tolstring(L, -1, nullptr);
  }
  return text + (shown < x.type.elements() ? ", ...}" : shown ? "}" : "");
}

// Copies the elements first + i * step of each dim, `count` of them, to a tensor of these dims.
HostTensor part(lua_State* L, Host& host, Index first, Index count, Index step, Index shape) {
  const HostTensor& x = host.value;
  const Dims from = to_integers(L, first, "first"), n = to_integers(L, count, "count"),
             by = to_integers(L, step, "step"), &dims = x.type.dims;
  HostTensor y = HostTensor::make({x.type.dtype, n});
  const auto size = static_cast<size_t>(orr_dtype_bytes(x.type.dtype));
  Dims at(dims.size(), 0);
  for (int64_t i = 0; i < y.type.elements(); ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) place = place * dims[d] + from[d] + at[d] * by[d];
    std::memcpy(y.data<std::byte>() + static_cast<size_t>(i) * size,
                x.data<std::byte>() + static_cast<size_t>(place) * size, size);
    for (size_t d = dims.size(); d-- > 0 && ++at[d] == n[d];) at[d] = 0;
  }
  y.type.dims = to_integers(L, shape, "shape");
  return y;
}

int64_t length(lua_State*, Host& x, Index) {
  if (x.value.type.dims.empty()) fail(ORR_INVALID, "a tensor without dims has no length");
  return x.value.type.dims[0];
}

Dims shape(Host& x) { return x.value.type.dims; }
Dtype dtype(Host& x) { return {x.value.type.dtype}; }

}  // namespace

HostTensor host_from_table(lua_State* L, int index, int32_t dtype) {
  index = lua_absindex(L, index);
  Dims dims;
  measure(L, index, dims);
  if (!dtype) {
    const bool integers = walk(L, index, dims, 0, [L] { return lua_isinteger(L, -1) != 0; });
    dtype = integers ? ORR_I64 : ORR_F32;
  }
  HostTensor x = HostTensor::make({dtype, dims});
  auto* place = x.data<std::byte>();
  walk(L, index, dims, 0, [&] {
    write_number(L, dtype, place);
    place += orr_dtype_bytes(dtype);
    return true;
  });
  return x;
}

HostTensor loaded(const BatchField& field) {
  HostTensor all = HostTensor::make(field.type);
  field.load(0, field.type.dims[0], all.data<std::byte>());
  return all;
}

HostTensor host_at(lua_State* L, int index) {
  if (const auto* host = test<Host>(L, index)) return host->value;
  if (const auto* field = test<Field>(L, index)) return loaded(field->value);
  if (lua_istable(L, index)) return host_from_table(L, index, 0);
  if (lua_type(L, index) == LUA_TNUMBER) return host_from_number(L, index, 0);
  fail(ORR_INVALID, "{} given, expected a HostTensor, a number or a list", describe(L, index));
}

void push_element(lua_State* L, const HostTensor& x, int64_t i) {
  const int32_t dtype = x.type.dtype;
  const std::byte* place = x.data<std::byte>() + i * orr_dtype_bytes(dtype);
  if (dtype == ORR_BOOL) return lua_pushboolean(L, read_element(dtype, place) != 0);
  if (is_any_real(dtype)) return lua_pushnumber(L, read_element(dtype, place));
  if (dtype == ORR_I64) return lua_pushinteger(L, x.data<int64_t>()[i]);
  lua_pushinteger(L, static_cast<lua_Integer>(read_element(dtype, place)));
}

std::vector<Api> host_api() {
  return {
      {"orrery.tensor(values: any, dtype?: dtype) -> HostTensor; A concrete tensor from a number "
       "or nested lists; integers give i64, other numbers f32.",
       call<tensor>},
      {"HostTensor.shape: integer[]", call<shape>},
      {"HostTensor.dtype: orrery.DType", call<dtype>},
      {"HostTensor:tolist() -> table; The elements as nested lists.", call<tolist>},
      {"HostTensor:item() -> number; The only element.", call<item>},
      {"engine.bytes(x: HostTensor) -> string; The elements as they lie in memory.",
       call<bytes_of>},
      {"engine.part(x: HostTensor, first: table, count: table, step: table, shape: table) -> "
       "HostTensor; Of each dim `count` elements, the 0-based `first`, first + step, ..., which "
       "exist, as a tensor of this shape.",
       call<part>},
      {"HostTensor.__len(a: any, b?: any) -> integer; How long the first dim is.", call<length>},
      {"HostTensor.__tostring(a: any, b?: any) -> string; Type and first elements.", call<show>},
  };
}

}  // namespace orrery::lua
