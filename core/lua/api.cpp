// SPDX-License-Identifier: Apache-2.0
//
// Dispatches the calls of the API table: checks a call against its row, fills in defaults, and runs
// the body so that C++ exceptions become Lua errors.
#include "lua/api.h"

#include <algorithm>

#include "base/text.h"
#include "base/work.h"
#include "lua/objects.h"
#include "lua/world.h"

namespace orrery::lua {
namespace {

std::string called(const Api& row) {
  return row.owner + (row.kind == Api::method ? ":" : ".") + row.name;
}

void push_literal(lua_State* L, const std::string& text) {
  if (luaL_loadstring(L, ("return " + text).c_str()) != LUA_OK) lua_error(L);
  lua_call(L, 0, 1);
}

// How the function is called, for who left an argument out.
std::string form_of(const Api& row) {
  std::vector<std::string> names;
  for (const Arg& arg : row.args)
    if (arg.name != "self") names.push_back(arg.name + (arg.fallback ? "?" : ""));
  return fmt::format("; call it as {}({})", called(row), join(names, ", "));
}

bool is_position(const Arg& arg, const Api& row) {
  return std::any_of(row.args.begin(), row.args.end(), [&](const Arg& a) { return &a == &arg; });
}

void check_value(lua_State* L, int index, const Arg& arg, const Api& row) {
  if (arg.type->is(L, index)) return;
  const std::string where = called(row);
  const bool no_list = (arg.is("integers") || arg.is("list")) && lua_istable(L, index);
  const std::string key = no_list ? named_key(L, index) : "";
  const std::string found = no_list ? list_fault(L, index) : describe(L, index);
  if (arg.name == "self")
    fail(ORR_INVALID, "{}: called on {}; call it with a colon, x:{}(...)", where, found, row.name);
  const bool misplaced = std::any_of(row.options.begin(), row.options.end(),
                                     [&](const Arg& option) { return option.name == key; });
  const std::string remedy =
      misplaced ? fmt::format("; options come after it: x:{}(nil, {{ {} = ... }})", row.name, key)
      : lua_isnoneornil(L, index) && is_position(arg, row) ? form_of(row)
                                                           : "";
  fail(ORR_INVALID, "{}: {} is {}, expected {}{}", where, arg.name, found, arg.type->expected,
       remedy);
}

// Throws Error if the table at `index` has a key that is not in `known`.
void refuse_unknown(lua_State* L, int index, const std::string& where,
                    const std::vector<std::string>& known) {
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    push_library(L, "orrery.hints", "option");
    push_text(L, key), push_list(L, known);
    lua_call(L, 2, 1);
    fail(ORR_INVALID, "{}: unknown option '{}'{}", where, key, lua_tostring(L, -1));
  }
}

// Replaces the option table at `index` by a copy with defaults.
void check_options(lua_State* L, int index, const Api& row) {
  const bool given = lua_istable(L, index);
  if (!given && !lua_isnoneornil(L, index))
    fail(ORR_INVALID, "{}: options are {}, expected a table{}", called(row), describe(L, index),
         row.options.empty() ? "" : fmt::format(", such as {{ {} = ... }}", row.options[0].name));
  if (given) {
    std::vector<std::string> known;
    for (const Arg& option : row.options) known.push_back(option.name);
    refuse_unknown(L, index, called(row), known);
  }
  lua_createtable(L, 0, static_cast<int>(row.options.size()));
  const int copy = lua_gettop(L);
  for (const Arg& option : row.options) {
    if (given && lua_getfield(L, index, option.name.c_str()) != LUA_TNIL) {
      check_value(L, copy + 1, option, row);
    } else {
      lua_settop(L, copy);
      if (!option.fallback)
        fail(ORR_INVALID, "{}: option '{}' is missing: {}", called(row), option.name, option.doc);
      push_literal(L, *option.fallback);
    }
    lua_setfield(L, copy, option.name.c_str());
  }
  lua_replace(L, index);
}

void check_args(lua_State* L, const Api& row) {
  const int given = lua_gettop(L), wanted = static_cast<int>(row.args.size());
  const bool rest = wanted > 0 && row.args.back().is("rest");
  const int self = row.kind == Api::method;
  if (given > wanted && !rest)
    fail(ORR_INVALID, "{}: {} arguments given, at most {} expected", called(row), given - self,
         wanted - self);
  if (given < wanted) lua_settop(L, wanted - rest);
  for (int i = 1; i <= wanted - rest; ++i) {
    const Arg& arg = row.args[static_cast<size_t>(i - 1)];
    if (arg.is("options")) {
      check_options(L, i, row);
    } else if (lua_isnil(L, i) && arg.fallback) {
      push_literal(L, *arg.fallback);
      lua_replace(L, i);
    } else {
      check_value(L, i, arg, row);
    }
  }
}

// What Lua's library says to a wrong call of this name: a sentence, or "".
std::string hint_for_call(lua_State* L, const Api& row) {
  const StackTop top(L);
  push_library(L, "orrery.hints", "call");
  push_text(L, row.owner), push_text(L, row.name);
  lua_call(L, 2, 1);
  return lua_tostring(L, -1);
}

// Whether a call outside of traces has a HostTensor among its arguments, or in a list of them, and
// gives tensors: it is computed now (scripts/orrery/eager.lua). orrery.print shows one as it is.
bool computes_now(lua_State* L, const Api& row) {
  const bool makes_tensors =
      row.returns.starts_with("orrery.Tensor") && !row.returns.ends_with("]");
  if (Trace::current() || !makes_tensors || row.name == "print" ||
      (row.owner != Tensor::kClass && row.owner != "orrery"))
    return false;
  for (int i = 1; i <= lua_gettop(L); ++i) {
    if (test<Host>(L, i)) return true;
    if (!lua_istable(L, i)) continue;
    const StackTop top(L);
    for (lua_Integer at = 1; lua_rawgeti(L, i, at) != LUA_TNIL; ++at, lua_pop(L, 1))
      if (test<Host>(L, -1)) return true;
  }
  return false;
}

int compute_now(lua_State* L, const Api& row) {
  push_library(L, "orrery.eager", "call");
  push_text(L, row.owner), push_text(L, row.name);
  lua_rotate(L, 1, 3);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

int dispatch(lua_State* L) {
  return guard(L, [](lua_State* state) {
    const auto* row = static_cast<const Api*>(lua_touserdata(state, lua_upvalueindex(1)));
    try {
      check_args(state, *row);
    } catch (const Error& error) {
      throw Error(error.code(), error.what() + hint_for_call(state, *row));
    }
    const Work work(row->name.c_str(), Work::of_script);
    return computes_now(state, *row) ? compute_now(state, *row) : row->body(state);
  });
}

std::map<std::string, Api>& library_rows() {
  static std::map<std::string, Api> rows;
  return rows;
}

// The body of rows of the Lua library: calls the function that is beside the row.
int call_function(lua_State* L) {
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

// Handles x.name: a field, a method, or an error that proposes the nearest name. Its upvalues are
// the functions and fields by name, and the class.
int class_index(lua_State* L) {
  return guard(L, [](lua_State* state) {
    lua_pushvalue(state, 2);
    const int type = lua_rawget(state, lua_upvalueindex(1));
    if (type == LUA_TFUNCTION) return 1;
    if (type == LUA_TLIGHTUSERDATA) {
      const auto* row = static_cast<const Api*>(lua_touserdata(state, -1));
      if (row->body(state)) return 1;
    }
    if (is_tensor(state, 1) && lua_type(state, 2) != LUA_TSTRING) {
      push_library(state, "orrery.indexing", "part");
      lua_pushvalue(state, 1), lua_pushvalue(state, 2);
      lua_call(state, 2, 1);
      return 1;
    }
    const std::string key = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "";
    const char* name = lua_tostring(state, lua_upvalueindex(2));
    push_library(state, "orrery.hints", "member");
    lua_pushstring(state, name);
    lua_pushvalue(state, 2);
    lua_call(state, 2, 1);
    std::string hint = lua_tostring(state, -1);
    const std::vector<std::string> members = sorted_keys(state, lua_upvalueindex(1));
    if (hint.empty()) hint = did_you_mean(key, members);
    if (hint.empty() && members.size() <= 8) hint = "; it has " + join(members, ", ");
    fail(ORR_INVALID, "a {} has no method or field {}{}", name, describe(state, 2), hint);
  });
}

int class_newindex(lua_State* L) {
  return guard(L, [](lua_State* state) -> int {
    fail(ORR_INVALID, "fields of a {} cannot be assigned",
         lua_tostring(state, lua_upvalueindex(1)));
  });
}

// Fills the metatable on top of the stack, and pops it.
void make_class(lua_State* L, const char* name, const std::vector<std::string>& owners) {
  const int meta = lua_gettop(L);
  lua_newtable(L);
  for (const std::string& owner : owners) install(L, owner);
  for (const std::string& key : sorted_keys(L, -1)) {
    if (!key.starts_with("__")) continue;
    lua_getfield(L, -1, key.c_str());
    lua_setfield(L, meta, key.c_str());
    lua_pushnil(L);
    lua_setfield(L, -2, key.c_str());
  }
  lua_pushstring(L, name);
  lua_pushcclosure(L, class_index, 2);
  lua_setfield(L, meta, "__index");
  lua_pushstring(L, name);
  lua_pushcclosure(L, class_newindex, 1);
  lua_setfield(L, meta, "__newindex");
  lua_pushboolean(L, 0);
  lua_setfield(L, meta, "__metatable");
  lua_settop(L, meta - 1);
}

template <class... T>
void define(lua_State* L) {
  (..., (push_class<T>(L), make_class(L, T::kClass, {T::kClass})));
}

// Gives the methods of tensors to classes whose objects stand for tensors.
template <class... T>
void define_as_tensor(lua_State* L) {
  (..., (push_class<T>(L), make_class(L, T::kClass, {Tensor::kClass, T::kClass})));
}

}  // namespace

const std::vector<Api>& api() {
  static const std::vector<Api> rows = [] {
    std::vector<Api> all;
    for (auto part :
         {math_api,       shape_api,     reduce_api,     comm_api,       layer_api,
          make_api,       host_api,      state_api,      run_api,        func_api,
          gradient_api,   plugin_op_api, draft_view_api, draft_edit_api, draft_program_api,
          draft_hook_api, world_api,     collective_api, weights_api,    data_api,
          dataset_api,    tool_api,      watch_api,      record_api,     terminal_api,
          survey_api}) {
      const std::vector<Api> more = part();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return rows;
}

void install(lua_State* L, const std::string& owner) {
  for (const Api& row : api()) {
    if (row.owner != owner) continue;
    lua_pushlightuserdata(L, const_cast<Api*>(&row));
    if (row.kind != Api::field) lua_pushcclosure(L, dispatch, 1);
    lua_setfield(L, -2, row.name.c_str());
  }
}

const std::map<std::string, Api>& library_api() { return library_rows(); }

const Api& row_of_library(const std::string& declaration) {
  return library_rows().try_emplace(declaration, declaration, call_function).first->second;
}

void install_row(lua_State* L, const Api& row) {
  lua_pushlightuserdata(L, const_cast<Api*>(&row));
  lua_insert(L, -2);
  lua_pushcclosure(L, dispatch, 2);
  const int function = lua_gettop(L);
  if (row.kind != Api::method) {
    lua_getfield(L, LUA_REGISTRYINDEX, "orrery");
    if (row.owner != "orrery") lua_getfield(L, -1, row.owner.c_str());
    lua_pushvalue(L, function);
    lua_setfield(L, -2, row.name.c_str());
  }
  for (const char* name : {row.owner.c_str(), StateRef::kClass, Scalar::kClass, Host::kClass}) {
    if (row.kind != Api::method || (name != row.owner && row.owner != Tensor::kClass)) continue;
    luaL_getmetatable(L, name);
    lua_getfield(L, -1, "__index");
    lua_getupvalue(L, -1, 1);  // of class_index: the functions and fields
    lua_pushvalue(L, function);
    lua_setfield(L, -2, row.name.c_str());
  }
  lua_settop(L, function - 1);
}

void define_classes(lua_State* L) {
  define<Tensor, RunRef, Result, Field, Compiled, Draft, World, Handle, DatasetRef, TokenizerRef,
         WeightsRef, Region>(L);
  define_as_tensor<StateRef, Scalar, Host>(L);
}

}  // namespace orrery::lua
