// SPDX-License-Identifier: Apache-2.0
//
// `require`: the library's own modules first, so that nothing shadows them, then the script's
// directory, then ORRERY_LUA_PATH (directories joined by ':').
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "lua/environment.h"
#include "lua/script.h"

namespace fs = std::filesystem;

namespace orrery::lua {
namespace {

bool is_library(const std::string& name) {
  return name == "orrery" || name.compare(0, 7, "orrery.") == 0;
}

std::vector<fs::path> directories(const std::string& name, const std::string& script_directory) {
  if (is_library(name)) return {lua_library()};
  std::vector<fs::path> list = {script_directory};
  const char* more = std::getenv("ORRERY_LUA_PATH");
  const std::string text = more ? more : "";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    if (end > at) list.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

// The file of a module; "" and the places tried if there is none.
fs::path find_module(const std::string& name, const std::string& script_directory,
                     std::vector<std::string>& tried) {
  std::string relative = name;
  for (char& letter : relative) letter = letter == '.' ? '/' : letter;
  for (const fs::path& directory : directories(name, script_directory)) {
    for (const char* ending : {".lua", "/init.lua"}) {
      const fs::path path = directory / (relative + ending);
      std::error_code error;
      if (fs::is_regular_file(path, error)) return path;
      tried.push_back(path.string());
    }
  }
  return {};
}

std::string chunk_name(const std::string& name, const fs::path& path) {
  if (!is_library(name)) return "@" + path.string();
  return kLibraryMark + fs::relative(path, fs::path(lua_library()) / "orrery").string();
}

// upvalue 1: loaded modules, 2: the script's directory
int require(lua_State* L) {
  return guard(L, [](lua_State* state) {
    const std::string name = luaL_checkstring(state, 1);
    lua_settop(state, 1);
    if (lua_getfield(state, lua_upvalueindex(1), name.c_str()) != LUA_TNIL) {
      if (lua_islightuserdata(state, -1)) {
        fail(ORR_FAILED, "require: module '{}' requires itself, directly or through others", name);
      }
      return 1;
    }
    std::vector<std::string> tried;
    const fs::path path = find_module(name, lua_tostring(state, lua_upvalueindex(2)), tried);
    if (path.empty()) {
      fail(ORR_FAILED, "require: there is no module '{}'; tried {}", name, join(tried, ", "));
    }
    lua_pushlightuserdata(state, state);
    lua_setfield(state, lua_upvalueindex(1), name.c_str());
    load_chunk(state, read_script(path.string()), chunk_name(name, path));
    push_text(state, name);
    if (is_library(name)) {
      lua_getfield(state, LUA_REGISTRYINDEX, "orrery");
    } else {
      push_text(state, path.string());
    }
    lua_call(state, 2, 1);
    if (lua_isnil(state, -1)) lua_pushboolean(state, 1);
    lua_pushvalue(state, -1);
    lua_setfield(state, lua_upvalueindex(1), name.c_str());
    return 1;
  });
}

}  // namespace

void set_require(lua_State* L, const std::string& script_directory) {
  lua_newtable(L);
  for (const char* name : {"string", "table", "math", "utf8", "os", "io", "coroutine", "debug"}) {
    lua_getglobal(L, name);
    lua_setfield(L, -2, name);
  }
  push_text(L, script_directory);
  lua_pushcclosure(L, require, 2);
  lua_setfield(L, -2, "require");
}

}  // namespace orrery::lua
