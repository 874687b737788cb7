// SPDX-License-Identifier: Apache-2.0
//
// orrery.args: the script declares its arguments with their defaults; the command line's key=value
// words are read by the defaults' types.
#include <cmath>

#include "base/text.h"
#include "lua/api.h"
#include "lua/environment.h"

namespace orrery::lua {
namespace {

struct Given {
  std::vector<std::string> words;
  bool read = false;
};

Given& given() {
  static Given arguments;
  return arguments;
}

[[noreturn]] void wrong(const std::string& key, const std::string& value, const std::string& want) {
  fail(kUsageError, "argument {}={}: expected {}", key, value, want);
}

// Pushes `value` as the type of the default at `index`.
void push_typed(lua_State* L, int index, const std::string& key, const std::string& value) {
  switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
      if (value != "true" && value != "1" && value != "false" && value != "0") {
        wrong(key, value, "true, false, 1 or 0");
      }
      return lua_pushboolean(L, value == "true" || value == "1");
    case LUA_TNUMBER: {
      const bool integer = lua_isinteger(L, index);
      if (lua_stringtonumber(L, value.c_str()) != value.size() + 1) {
        wrong(key, value, integer ? "an integer" : "a number");
      }
      int exact = 0;
      const lua_Integer whole = lua_tointegerx(L, -1, &exact);
      if (!integer) {
        const lua_Number number = lua_tonumber(L, -1);
        lua_pop(L, 1);
        return lua_pushnumber(L, number);
      }
      if (!exact) wrong(key, value, "an integer");
      lua_pop(L, 1);
      return lua_pushinteger(L, whole);
    }
    default: push_text(L, value);
  }
}

// A default that is a list names the values allowed; the first is the default.
void check_allowed(lua_State* L, int index, const std::string& key, const std::string& value) {
  std::vector<std::string> allowed;
  for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; ++i) {
    allowed.push_back(luaL_tolstring(L, -1, nullptr));
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
  for (const std::string& name : allowed) {
    if (name == value) return;
  }
  wrong(key, value, "one of " + join(allowed, ", "));
}

void read_argument(lua_State* L, const std::string& word, const std::vector<std::string>& known) {
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  if (equals == std::string::npos || equals == 0) {
    fail(kUsageError, "argument '{}': write key=value; the script takes {}", word,
         join(known, ", "));
  }
  if (lua_getfield(L, 1, key.c_str()) == LUA_TNIL) {
    const std::string near = did_you_mean(key, known);
    fail(kUsageError, "argument '{}' is unknown{}; the script takes {}", key, near,
         join(known, ", "));
  }
  const std::string value = word.substr(equals + 1);
  const int fallback = lua_gettop(L);
  if (lua_istable(L, fallback)) {
    check_allowed(L, fallback, key, value);
    lua_rawgeti(L, fallback, 1);
  }
  push_typed(L, lua_gettop(L), key, value);
  lua_setfield(L, 2, key.c_str());
  lua_settop(L, 2);
}

int unknown_field(lua_State* L) {
  return guard(L, [](lua_State* state) -> int {
    const std::string name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "?";
    fail(ORR_INVALID, "the script declares no argument '{}'{}", name,
         did_you_mean(name, sorted_keys(state, 1)));
  });
}

int args(lua_State* L) {
  const std::vector<std::string> known = sorted_keys(L, 1);
  lua_newtable(L);
  for (const std::string& key : known) {
    lua_getfield(L, 1, key.c_str());
    if (lua_istable(L, -1)) lua_rawgeti(L, -1, 1);
    lua_setfield(L, 2, key.c_str());
    lua_settop(L, 2);
  }
  given().read = true;
  for (const std::string& word : given().words) read_argument(L, word, known);
  lua_newtable(L);
  lua_pushcfunction(L, unknown_field);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, 2);
  return 1;
}

}  // namespace

void set_script_arguments(const std::vector<std::string>& words) { given() = {words, false}; }

void refuse_unread_arguments() {
  if (given().read || given().words.empty()) return;
  fail(kUsageError, "argument '{}': the script takes none (it has not called orrery.args)",
       given().words.front());
}

std::vector<Api> script_api() {
  return {
      {"orrery",
       "args",
       "table",
       "Declares the script's key=value arguments with their defaults and returns their values. A "
       "list as default names the allowed values.",
       args,
       {{"defaults", "table"}},
       {}},
  };
}

}  // namespace orrery::lua
