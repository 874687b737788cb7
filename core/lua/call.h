// SPDX-License-Identifier: Apache-2.0
//
// Makes bodies of the API table from C++ functions: call<f> reads f's parameters from the Lua
// stack, in order and by their types, calls f, and pushes its result. REQUIRES: the row has checked
// the arguments.
#pragma once

#include <tuple>
#include <type_traits>

#include "lua/api.h"
#include "lua/objects.h"
#include "lua/traced.h"

namespace orrery::lua {

// The arguments of a call while they are read.
struct Arguments {
  lua_State* L;
  int last = 0;           // the stack index of the argument that was read last
  ValueId first = kNone;  // the first tensor: parameters of type Dim are dims of it
  int next() { return ++last; }
};

// Types that tell apart parameters which would otherwise be plain integers.
struct Index {  // the stack index of an argument that the function reads itself
  int at;
  operator int() const { return at; }
};
struct Dtype {
  int32_t id;
  operator int32_t() const { return id; }
};
struct Dim {  // 0-based, of the first tensor
  int64_t number;
  operator int64_t() const { return number; }
};
struct Pushed {  // a result: the function has pushed this many values by itself
  int count;
};

// -- reading a parameter of type T ----------------------------------------------------------------

template <class T>
struct As {};

inline lua_State* read(Arguments& in, As<lua_State*>) { return in.L; }
inline Program& read(Arguments& in, As<Program&>) { return program_here(in.L); }
inline Index read(Arguments& in, As<Index>) { return {in.next()}; }
inline Table read(Arguments& in, As<Table>) { return {in.L, in.next()}; }
inline bool read(Arguments& in, As<bool>) { return lua_toboolean(in.L, in.next()); }
inline int64_t read(Arguments& in, As<int64_t>) { return lua_tointeger(in.L, in.next()); }
inline double read(Arguments& in, As<double>) { return exact_number(in.L, in.next()); }
inline std::string read(Arguments& in, As<std::string>) { return to_text(in.L, in.next(), ""); }
inline Dtype read(Arguments& in, As<Dtype>) { return {to_dtype(in.L, in.next())}; }
inline Function read(Arguments& in, As<Function>) { return Function(in.L, in.next()); }
inline Operand read(Arguments& in, As<Operand>) { return operand_at(in.L, in.next()); }
inline HostTensor read(Arguments& in, As<HostTensor>) { return host_at(in.L, in.next()); }
inline ValueId read(Arguments& in, As<ValueId>) {
  const ValueId value = value_at(in.L, in.next());
  return in.first == kNone ? in.first = value : value;
}
inline std::vector<ValueId> read(Arguments& in, As<std::vector<ValueId>>) {
  return list_at(in.L, in.next(), value_at);
}
inline Dim read(Arguments& in, As<Dim>) {
  return {to_dim(lua_tointeger(in.L, in.next()), program_here(in.L).type(in.first).dims.size())};
}
// A userdata.
template <class T>
T& read(Arguments& in, As<T&>) {
  return check<T>(in.L, in.next());
}

// -- pushing a result; returns the number of Lua values -------------------------------------------

inline int give(lua_State*, Pushed pushed) { return pushed.count; }
inline int give(lua_State* L, ValueId id) { return push_tensor(L, id), 1; }
inline int give(lua_State* L, bool value) { return push_value(L, value), 1; }
inline int give(lua_State* L, int64_t value) { return push_value(L, value), 1; }
inline int give(lua_State* L, double value) { return push_value(L, value), 1; }
inline int give(lua_State* L, const std::string& text) { return push_text(L, text), 1; }
inline int give(lua_State* L, const Dims& shape) { return push_shape(L, shape), 1; }
inline int give(lua_State* L, Dtype dtype) { return push_text(L, dtype_name(dtype)), 1; }
inline int give(lua_State* L, const HostTensor& value) { return push(L, Host{value}), 1; }
inline int give(lua_State* L, const std::vector<std::string>& texts) {
  return push_list(L, texts), 1;
}
inline int give(lua_State* L, const std::vector<ValueId>& tensors) {
  luaL_checkstack(L, static_cast<int>(tensors.size()), "too many results");
  for (ValueId tensor : tensors) push_tensor(L, tensor);
  return static_cast<int>(tensors.size());
}
template <class T>
requires std::is_class_v<T>
int give(lua_State* L, T object) { return push(L, std::move(object)), 1; }

// -- the call -------------------------------------------------------------------------------------

// How a parameter is kept until the call: as a reference to an object that Lua owns, or as a value.
template <class T>
using Held = std::conditional_t<std::is_lvalue_reference_v<T> &&
                                    !std::is_const_v<std::remove_reference_t<T>>,
                                T, std::remove_cvref_t<T>>;

template <auto f>
struct Call;

template <class R, class... T, R (*f)(T...)>
struct Call<f> {
  static int body(lua_State* L) {
    [[maybe_unused]] Arguments in{L};
    std::tuple<Held<T>...> arguments{read(in, As<Held<T>>{})...};
    if constexpr (std::is_void_v<R>) {
      std::apply(f, std::move(arguments));
      return 0;
    } else {
      return give(L, std::apply(f, std::move(arguments)));
    }
  }
};

template <auto f>
constexpr Body call = Call<f>::body;

}  // namespace orrery::lua
