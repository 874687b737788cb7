// SPDX-License-Identifier: Apache-2.0
#include "lua/environment.h"

#include <cstdlib>
#include <filesystem>

#include "base/machine.h"
#include "base/text_file.h"
#include "lua/api.h"
#include "lua/objects.h"
#include "lua/script.h"

namespace orrery::lua {
namespace {

const char strict_key = 0;

// Makes the tables orrery, orrery.engine and orrery.data; the Lua library adds to them.
void define_engine(lua_State* L) {
  lua_newtable(L);
  install(L, "orrery");
  for (const char* name : {"engine", "data"}) {
    lua_newtable(L);
    install(L, name);
    lua_setfield(L, -2, name);
  }
  lua_setfield(L, LUA_REGISTRYINDEX, "orrery");
}

// Runs globals.lua, which changes _G and returns the table of globals for chunks.
void set_globals(lua_State* L, const std::string& script_directory) {
  load_chunk(L, read_script(lua_library() + "/orrery/globals.lua"),
             std::string(kLibraryMark) + "globals.lua");
  lua_pushglobaltable(L);
  lua_setupvalue(L, -2, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, "orrery");
  push_text(L, script_directory);
  const char* more = std::getenv("ORRERY_LUA_PATH");
  lua_pushstring(L, more ? more : "");
  protected_call(L, 3, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &strict_key);
}

}  // namespace

void open_environment(lua_State* L, const std::string& script) {
  luaL_openlibs(L);
  lua_gc(L, LUA_GCINC, 0, 0, 0);
  ordinals() = {};
  define_classes(L);
  define_engine(L);
  seed_random(L);
  const std::string directory = std::filesystem::path(script).parent_path().string();
  set_globals(L, directory.empty() ? "." : directory);
}

std::string read_script(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail(kUsageError, "{}: there is no such script", path);
  }
  constexpr uint64_t most = 64 << 20;
  std::string text = read_text(path, path, kUsageError, most);
  if (text.starts_with('#'))
    text.erase(0, text.find('\n'));  // a line for the shell: #!/usr/bin/env
  return text;
}

void load_chunk(lua_State* L, const std::string& text, const std::string& chunk_name) {
  const int status = luaL_loadbufferx(L, text.data(), text.size(), chunk_name.c_str(), "t");
  if (status == LUA_ERRMEM) throw Error(ORR_FAILED, out_of_memory());
  if (status != LUA_OK) {
    const std::string message = lua_tostring(L, -1);
    lua_pop(L, 1);
    throw Error(ORR_FAILED, message);
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &strict_key);
  lua_setupvalue(L, -2, 1);
}

std::string random_state(lua_State* L) {
  const int top = lua_gettop(L);
  std::string state;
  lua_getglobal(L, "math");
  // Lua keeps it in the first upvalue of the function.
  if (lua_istable(L, -1) && lua_getfield(L, -1, "random") == LUA_TFUNCTION &&
      lua_iscfunction(L, -1) && lua_getupvalue(L, -1, 1) && lua_isuserdata(L, -1))
    state.assign(static_cast<const char*>(lua_touserdata(L, -1)), lua_rawlen(L, -1));
  lua_settop(L, top);
  return state;
}

void seed_random(lua_State* L) {
  lua_getglobal(L, "math");
  lua_getfield(L, -1, "randomseed");
  lua_pushinteger(L, static_cast<lua_Integer>(runtime_options().seed));
  lua_pushinteger(L, 0);
  lua_call(L, 2, 0);
  lua_pop(L, 1);
}

GivenScript& given_script() {
  static GivenScript one;
  return one;
}

}  // namespace orrery::lua
