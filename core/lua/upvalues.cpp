// SPDX-License-Identifier: Apache-2.0
#include "lua/upvalues.h"

#include <cstring>

namespace orrery::lua {
namespace {

bool is_script_function(lua_State* L, int index) {
  if (!lua_isfunction(L, index) || lua_iscfunction(L, index)) return false;
  lua_Debug info;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &info);
  return std::strncmp(info.source, kLibraryMark, std::strlen(kLibraryMark)) != 0;
}

std::string defined_at(lua_State* L, int index) {
  lua_Debug info;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &info);
  return fmt::format("{}:{}", info.source[0] == '@' ? info.source + 1 : info.short_src,
                     info.linedefined);
}

double scalar(lua_State* L, int index) {
  return lua_isboolean(L, index) ? lua_toboolean(L, index) : lua_tonumber(L, index);
}

std::string shown(double value, bool boolean) {
  return boolean ? (value != 0 ? "true" : "false") : fmt::format("{}", value);
}

}  // namespace

bool Upvalues::known(lua_State* L, int index) const {
  for (const Function& function : functions_) {
    function.push();
    const bool same = lua_rawequal(L, -1, index);
    lua_pop(L, 1);
    if (same) return true;
  }
  return false;
}

void Upvalues::watch(lua_State* L, int index) {
  index = lua_absindex(L, index);
  if (!is_script_function(L, index) || known(L, index)) return;
  functions_.emplace_back(L, index);
  luaL_checkstack(L, 8, "nested upvalues");
  for (int i = 1; lua_getupvalue(L, index, i); ++i) {
    watch(L, -1);
    lua_pop(L, 1);
  }
}

void Upvalues::take(lua_State* L) {
  entries_.clear();
  for (size_t f = 0; f < functions_.size(); ++f) {
    functions_[f].push();
    for (int i = 1; lua_getupvalue(L, -1, i); ++i) {
      const bool boolean = lua_isboolean(L, -1);
      if (boolean || lua_type(L, -1) == LUA_TNUMBER) {
        entries_.push_back({f, i, boolean, scalar(L, -1)});
      }
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  taken_ = true;
}

void Upvalues::check(lua_State* L) const {
  for (const Entry& entry : entries_) {
    functions_[entry.function].push();
    const char* name = lua_getupvalue(L, -1, entry.upvalue);
    const bool boolean = lua_isboolean(L, -1);
    const bool scalar_now = boolean || lua_type(L, -1) == LUA_TNUMBER;
    const double now = scalar_now ? scalar(L, -1) : 0;
    const bool same = scalar_now && boolean == entry.boolean &&
                      (now == entry.value || (now != now && entry.value != entry.value));
    if (!same) {
      const std::string shown_now = scalar_now ? shown(now, boolean) : describe(L, -1);
      const std::string place = defined_at(L, -2);
      fail(ORR_INVALID,
           "'{}' of the function at {} was {} when the step was traced and is {} now; a trace "
           "keeps the first value: make it an orrery.input, or compile again",
           name, place, shown(entry.value, entry.boolean), shown_now);
    }
    lua_pop(L, 2);
  }
}

}  // namespace orrery::lua
