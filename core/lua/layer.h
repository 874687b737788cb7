// SPDX-License-Identifier: Apache-2.0
//
// The typed layer over the raw Lua API: userdata classes, C++ errors as Lua errors, and the place
// in the user's script that a message should name. Lua here is built as C++: its errors unwind.
#pragma once

#include <lua.hpp>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/machine.h"
#include "run/run.h"

namespace orrery::lua {

// Chunk names of the Lua library begin with this, so that errors can skip its frames.
inline constexpr const char* kLibraryMark = "=orrery/";

// "gpt.lua:20" of the innermost frame that is neither C nor library code; "" outside any script.
std::string user_line(lua_State* L);

// Raises a Lua error "file:line: message" (without a second position if there is one already) and
// remembers the code for error_code().
[[noreturn]] void raise(lua_State* L, int code, const std::string& message);
// Raises what ends a script under `plan`: no error, whatever catches it.
[[noreturn]] void raise_plan_done(lua_State* L);
bool is_plan_done(lua_State* L, int index);

// The code that `message` was raised with; ORR_FAILED if it came from Lua itself.
int error_code(const std::string& message);

// The one message handler: "file:line: message", with a traceback when ORRERY_TRACEBACK is set.
int message_handler(lua_State* L);

// Pushes a function of a module of the Lua library.
void push_library(lua_State* L, const char* module, const char* function);

// lua_pcall with the message handler; a Lua error becomes Error.
void protected_call(lua_State* L, int n_args, int n_results);

// Thrown by the first step under `orrery plan`, after the plan has been printed.
struct PlanDone {};

// Runs `body(L)`; what it throws becomes a Lua error. Only std::exception and PlanDone are caught:
// Lua's own errors pass through.
template <class F>
int guard(lua_State* L, F&& body) {
  int code = ORR_FAILED;
  std::string message;
  bool plan_done = false;
  try {
    return body(L);
  } catch (const PlanDone&) {
    plan_done = true;
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  } catch (const std::bad_alloc&) {
    message = out_of_memory();
  } catch (const std::length_error&) {
    message = out_of_memory();  // of a vector or text that no memory could hold
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    message = no_thread ? out_of_threads() : error.what();
  } catch (const std::exception& error) {
    message = error.what();
  }
  if (plan_done) raise_plan_done(L);
  raise(L, code, message);
}

// -- userdata: every class T names itself with T::kClass ------------------------------------------

template <class T>
int collect(lua_State* L) {
  static_cast<T*>(lua_touserdata(L, 1))->~T();
  return 0;
}

// Pushes the metatable of T; it has __gc and __name when new.
template <class T>
void push_class(lua_State* L) {
  if (!luaL_newmetatable(L, T::kClass)) return;
  lua_pushcfunction(L, collect<T>);
  lua_setfield(L, -2, "__gc");
}

template <class T>
T& push(lua_State* L, T value) {
  void* place = lua_newuserdatauv(L, sizeof(T), 0);
  T* made = new (place) T(std::move(value));
  push_class<T>(L);
  lua_setmetatable(L, -2);
  return *made;
}

template <class T>
T* test(lua_State* L, int index) {
  return static_cast<T*>(luaL_testudata(L, index, T::kClass));
}

template <class T>
T& check(lua_State* L, int index) {
  T* found = test<T>(L, index);
  if (!found) {
    fail(ORR_INVALID, "argument {} is a {}, expected a {}", index, luaL_typename(L, index),
         T::kClass);
  }
  return *found;
}

// -- plain values --------------------------------------------------------------------------------

// "a HostTensor", "nil", "a string": how messages call the value.
std::string describe(lua_State* L, int index);

// An integer; floats with an integral value are accepted. `what` names it in the error.
int64_t to_integer(lua_State* L, int index, const std::string& what);
double to_number(lua_State* L, int index, const std::string& what);
// The number at `index` as programs hold it. Throws Error for an integer that would be rounded.
double exact_number(lua_State* L, int index);
std::string to_text(lua_State* L, int index, const std::string& what);
// A list {1, 2, 3} or a single number.
std::vector<int64_t> to_integers(lua_State* L, int index, const std::string& what);
// The first key, in the order of names, that a table has beside the places of a list; "": none.
std::string named_key(lua_State* L, int index);
// Why the table at `index` is no list, in words: "a table with the key 'keep'", or, where a value
// in the middle is nil, "a list with nothing at place 2"; "" if it is one.
std::string list_fault(lua_State* L, int index);
int32_t to_dtype(lua_State* L, int index);
// A Lua dim (1-based, negative from the end) of a tensor with `rank` dims, as 0-based.
int64_t to_dim(int64_t dim, size_t rank);

void push_text(lua_State* L, const std::string& text);
// A table of dims that also answers negative indices and prints as [2,3].
void push_shape(lua_State* L, const Dims& dims);

inline void push_value(lua_State* L, bool value) { lua_pushboolean(L, value); }
inline void push_value(lua_State* L, int32_t value) { lua_pushinteger(L, value); }
inline void push_value(lua_State* L, int64_t value) { lua_pushinteger(L, value); }
inline void push_value(lua_State* L, uint64_t value) { push_value(L, static_cast<int64_t>(value)); }
inline void push_value(lua_State* L, double value) { lua_pushnumber(L, value); }
inline void push_value(lua_State* L, const char* text) { lua_pushstring(L, text); }
inline void push_value(lua_State* L, const std::string& text) { push_text(L, text); }

// Sets a field of the table on top.
template <class T>
void set_field(lua_State* L, const char* name, const T& value) {
  push_value(L, value);
  lua_setfield(L, -2, name);
}

// A list of what `push_one(L, element)` pushes of each.
template <class List, class Push>
void push_list(lua_State* L, const List& list, Push&& push_one) {
  lua_createtable(L, static_cast<int>(list.size()), 0);
  lua_Integer at = 0;
  for (const auto& each : list) {
    push_one(L, each);
    lua_rawseti(L, -2, ++at);
  }
}
template <class List>
void push_list(lua_State* L, const List& list) {
  push_list(L, list, [](lua_State* state, const auto& each) { push_value(state, each); });
}

// What `read(L, index)` makes of each element of a list.
template <class Read>
auto list_at(lua_State* L, int index, Read&& read) {
  index = lua_absindex(L, index);
  std::vector<decltype(read(L, index))> list;
  for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; ++i) {
    list.push_back(read(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return list;
}
// A number, a text or a list of integers; booleans are 1 and 0. `what` names it in the error.
Attr attr_at(lua_State* L, int index, const std::string& what);
std::vector<std::string> texts_at(lua_State* L, int index, const std::string& what);

// A table by its fields: options, checked and with their defaults, or what the library hands over.
struct Table {
  lua_State* L;
  int index;
  // What `read(L, index)`, or `read(L, index, name)`, makes of the field.
  template <class Read>
  auto with(const std::string& name, Read&& read) const {
    lua_getfield(L, index, name.c_str());
    auto value = [&] {
      if constexpr (std::is_invocable_v<Read, lua_State*, int, const std::string&>)
        return read(L, lua_gettop(L), name);
      else
        return read(L, lua_gettop(L));
    }();
    lua_pop(L, 1);
    return value;
  }
  bool has(const std::string& name) const { return with(name, lua_type) != LUA_TNIL; }
  bool flag(const std::string& name) const { return with(name, lua_toboolean) != 0; }
  int64_t integer(const std::string& name) const { return with(name, to_integer); }
  double number(const std::string& name) const { return with(name, to_number); }
  std::string text(const std::string& name) const { return with(name, to_text); }
  std::vector<int64_t> integers(const std::string& name) const { return with(name, to_integers); }
};

// Gives the stack back its height.
struct StackTop {
  explicit StackTop(lua_State* L) : L(L), at(lua_gettop(L)) {}
  ~StackTop() { lua_settop(L, at); }
  StackTop(const StackTop&) = delete;
  lua_State* L;
  const int at;
};

// The string keys of the table at `index`, sorted.
std::vector<std::string> sorted_keys(lua_State* L, int index);

// A function kept alive from C++. Copies share it; released with the last one.
class Function {
 public:
  Function(lua_State* L, int index);
  void push() const;
  lua_State* state() const { return L_; }

 private:
  lua_State* L_;
  std::shared_ptr<int> ref_;
};
inline Function function_at(lua_State* L, int index) { return Function(L, index); }

}  // namespace orrery::lua
