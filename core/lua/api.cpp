// SPDX-License-Identifier: Apache-2.0
//
// The dispatcher of the API table: every call passes through here, is checked against its row, gets
// its defaults and runs guarded.
#include "lua/api.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "base/work.h"
#include "lua/api_types.h"
#include "lua/hints.h"

namespace orrery::lua {
namespace {

std::string called(const Api& row) {
  return row.args.empty() || std::strcmp(row.args[0].name, "self") != 0
             ? fmt::format("{}.{}", row.owner, row.name)
             : fmt::format(":{}", row.name);
}

void push_literal(lua_State* L, const char* text) {
  const std::string chunk = std::string("return ") + text;
  if (luaL_loadstring(L, chunk.c_str()) != LUA_OK) lua_error(L);
  lua_call(L, 0, 1);
}

void check_value(lua_State* L, int index, const Arg& arg, const std::string& where) {
  const ApiType& type = api_type(arg.type);
  if (type.is(L, index)) return;
  if (std::strcmp(arg.name, "self") == 0) {
    fail(ORR_INVALID, "{}: called on {}; call it with a colon, x{}(...)", where, describe(L, index),
         where);
  }
  fail(ORR_INVALID, "{}: {} is {}, expected {}", where, arg.name, describe(L, index), type.words);
}

// Replaces the option table at `index` by a copy with defaults.
void check_options(lua_State* L, int index, const Api& row) {
  const std::string where = called(row);
  if (!lua_isnoneornil(L, index) && !lua_istable(L, index)) {
    fail(ORR_INVALID, "{}: options are {}, expected a table", where, describe(L, index));
  }
  std::vector<std::string> known;
  for (const Arg& option : row.options) known.emplace_back(option.name);
  lua_createtable(L, 0, static_cast<int>(known.size()));
  const int copy = lua_gettop(L);
  if (lua_istable(L, index)) {
    lua_pushnil(L);
    while (lua_next(L, index)) {
      lua_pop(L, 1);
      const std::string key =
          lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : describe(L, -1);
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        fail(ORR_INVALID, "{}: unknown option '{}'{}", where, key, did_you_mean(key, known));
      }
    }
  }
  for (const Arg& option : row.options) {
    if (!lua_istable(L, index) || lua_getfield(L, index, option.name) == LUA_TNIL) {
      lua_settop(L, copy);
      if (!option.fallback) {
        fail(ORR_INVALID, "{}: option '{}' is missing: {}", where, option.name, option.doc);
      }
      push_literal(L, option.fallback);
    } else {
      check_value(L, lua_gettop(L), option, where);
    }
    lua_setfield(L, copy, option.name);
  }
  lua_replace(L, index);
}

void check_args(lua_State* L, const Api& row) {
  const int given = lua_gettop(L);
  const auto wanted = static_cast<int>(row.args.size());
  const bool rest = wanted > 0 && std::strcmp(row.args.back().type, "rest") == 0;
  if (given > wanted && !rest) {
    fail(ORR_INVALID, "{}: {} arguments given, at most {} expected", called(row), given, wanted);
  }
  if (!rest) lua_settop(L, wanted);
  for (int i = 1; i <= wanted; ++i) {
    const Arg& arg = row.args[static_cast<size_t>(i - 1)];
    if (std::strcmp(arg.type, "rest") == 0) return;
    if (std::strcmp(arg.type, "options") == 0) {
      check_options(L, i, row);
    } else if (lua_isnoneornil(L, i) && arg.fallback) {
      if (lua_gettop(L) < i) lua_settop(L, i);
      push_literal(L, arg.fallback);
      lua_replace(L, i);
    } else {
      check_value(L, i, arg, called(row));
    }
  }
}

int dispatch(lua_State* L) {
  return guard(L, [](lua_State* state) {
    const auto* row = static_cast<const Api*>(lua_touserdata(state, lua_upvalueindex(1)));
    check_args(state, *row);
    const Work work(row->name, Work::of_script);
    return row->body(state);
  });
}

// x.name: a property, a method, or an error that names the nearest.
int class_index(lua_State* L) {
  return guard(L, [](lua_State* state) {
    const std::string key = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "";
    const auto properties =
        reinterpret_cast<Properties>(lua_touserdata(state, lua_upvalueindex(2)));
    if (properties && properties(state, key)) return 1;
    lua_pushvalue(state, 2);
    if (lua_rawget(state, lua_upvalueindex(1)) == LUA_TFUNCTION) return 1;
    const char* name = lua_tostring(state, lua_upvalueindex(3));
    std::string hint = member_hint(name, key, lua_type(state, 2) == LUA_TNUMBER);
    if (hint.empty()) hint = did_you_mean(key, sorted_keys(state, lua_upvalueindex(1)));
    fail(ORR_INVALID, "a {} has no method or field {}{}", name, describe(state, 2), hint);
  });
}

int class_newindex(lua_State* L) {
  return guard(L, [](lua_State* state) -> int {
    fail(ORR_INVALID, "fields of a {} cannot be assigned",
         lua_tostring(state, lua_upvalueindex(1)));
  });
}

}  // namespace

const std::vector<Api>& api() {
  static const std::vector<Api> rows = [] {
    std::vector<Api> all;
    for (auto part : {math_api(),       shape_api(),      reduce_api(),        comm_api(),
                      layer_api(),      make_api(),       host_api(),          state_api(),
                      run_api(),        func_api(),       gradient_api(),      plugin_op_api(),
                      draft_view_api(), draft_edit_api(), draft_program_api(), draft_hook_api(),
                      world_api(),      data_api(),       script_api(),        tool_api()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

void install(lua_State* L, const std::string& owner) {
  for (const Api& row : api()) {
    if (row.owner != owner) continue;
    lua_pushlightuserdata(L, const_cast<Api*>(&row));
    lua_pushcclosure(L, dispatch, 1);
    lua_setfield(L, -2, row.name);
  }
}

std::vector<std::string> names_of(const std::string& owner) {
  std::vector<std::string> names;
  for (const Api& row : api()) {
    if (row.owner == owner) names.emplace_back(row.name);
  }
  return names;
}

void make_class(lua_State* L, const char* name, const std::vector<std::string>& owners,
                Properties properties, const std::vector<std::string>& fields) {
  lua_newtable(L);
  for (const std::string& field : fields) {
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, field.c_str());
  }
  for (const std::string& owner : owners) install(L, owner);
  for (const char* meta : {"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__lt",
                           "__le", "__eq", "__len", "__concat", "__tostring", "__close"}) {
    if (lua_getfield(L, -1, meta) == LUA_TNIL) {
      lua_pop(L, 1);
      continue;
    }
    lua_setfield(L, -3, meta);
    lua_pushnil(L);
    lua_setfield(L, -2, meta);
  }
  lua_pushlightuserdata(L, reinterpret_cast<void*>(properties));
  lua_pushstring(L, name);
  lua_pushcclosure(L, class_index, 3);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, name);
  lua_pushcclosure(L, class_newindex, 1);
  lua_setfield(L, -2, "__newindex");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
}

bool option_bool(lua_State* L, int index, const char* name) {
  lua_getfield(L, index, name);
  const bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

int64_t option_int(lua_State* L, int index, const char* name) {
  lua_getfield(L, index, name);
  const int64_t value = to_integer(L, -1, name);
  lua_pop(L, 1);
  return value;
}

double option_real(lua_State* L, int index, const char* name) {
  lua_getfield(L, index, name);
  const double value = to_number(L, -1, name);
  lua_pop(L, 1);
  return value;
}

std::string option_text(lua_State* L, int index, const char* name) {
  lua_getfield(L, index, name);
  const std::string value = to_text(L, -1, name);
  lua_pop(L, 1);
  return value;
}

}  // namespace orrery::lua
