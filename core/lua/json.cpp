// SPDX-License-Identifier: Apache-2.0
#include "lua/json.h"

#include <nlohmann/json.hpp>

namespace orrery::lua {

using nlohmann::json;

void push_json(lua_State* L, const json& given) {
  luaL_checkstack(L, 4, "JSON is nested too deeply");
  if (given.is_object()) {
    lua_createtable(L, 0, static_cast<int>(given.size()));
    for (const auto& [name, value] : given.items()) {
      push_json(L, value);
      lua_setfield(L, -2, name.c_str());
    }
  } else if (given.is_array()) {
    push_list(L, given, push_json);
  } else if (given.is_string()) {
    push_text(L, given.get_ref<const std::string&>());
  } else if (given.is_boolean()) {
    push_value(L, given.get<bool>());
  } else if (given.is_number_float()) {
    push_value(L, given.get<double>());
  } else if (given.is_number()) {
    push_value(L, given.get<int64_t>());
  } else {
    lua_pushnil(L);
  }
}

json plain_fields(const Table& given) {
  json fields = json::object();
  for (const std::string& name : sorted_keys(given.L, given.index))
    given.with(name, [&](lua_State* L, int at) {
      if (lua_isinteger(L, at)) fields[name] = static_cast<int64_t>(lua_tointeger(L, at));
      if (lua_type(L, at) == LUA_TNUMBER && !lua_isinteger(L, at))
        fields[name] = lua_tonumber(L, at);
      if (lua_type(L, at) == LUA_TSTRING) fields[name] = to_text(L, at, name);
      return 0;
    });
  return fields;
}

}  // namespace orrery::lua
