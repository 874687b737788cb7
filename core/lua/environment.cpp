// SPDX-License-Identifier: Apache-2.0
#include "lua/environment.h"

#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "base/text_file.h"
#include "lua/api.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

const char strict_key = 0;

// upvalue 1: the table of what is declared.
int undeclared_read(lua_State* L) {
  return guard(L, [](lua_State* state) -> int {
    const std::string name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "?";
    fail(ORR_FAILED, "undeclared variable '{}'{}", name,
         did_you_mean(name, sorted_keys(state, lua_upvalueindex(1))));
  });
}

int undeclared_write(lua_State* L) {
  return guard(L, [](lua_State* state) -> int {
    const std::string name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "?";
    fail(ORR_FAILED, "assignment to undeclared variable '{}'; write local {} = ...", name, name);
  });
}

// The global table of chunks: reads what `_G` has, refuses the rest.
void make_strict_globals(lua_State* L) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushglobaltable(L);
  lua_newtable(L);
  lua_pushglobaltable(L);
  lua_pushcclosure(L, undeclared_read, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, undeclared_write);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &strict_key);
}

// load, loadfile and dofile would bring bytecode and other globals in; load keeps text and
// strictness.
int strict_load(lua_State* L) {
  return guard(L, [](lua_State* state) {
    size_t size = 0;
    const char* text = luaL_checklstring(state, 1, &size);
    const char* name = luaL_optstring(state, 2, text);
    if (luaL_loadbufferx(state, text, size, name, "t") != LUA_OK) {
      lua_pushnil(state);
      lua_insert(state, -2);
      return 2;
    }
    if (lua_gettop(state) > 4) {
      lua_pushvalue(state, 4);
    } else {
      lua_rawgetp(state, LUA_REGISTRYINDEX, &strict_key);
    }
    lua_setupvalue(state, -2, 1);
    return 1;
  });
}

void seed_random(lua_State* L) {
  lua_getglobal(L, "math");
  lua_getfield(L, -1, "randomseed");
  lua_pushinteger(L, static_cast<lua_Integer>(runtime_options().seed));
  lua_pushinteger(L, 0);
  lua_call(L, 2, 0);
  lua_pop(L, 1);
}

void define_engine(lua_State* L) {
  lua_newtable(L);
  install(L, "orrery");
  lua_newtable(L);
  install(L, "engine");
  lua_setfield(L, -2, "engine");
  lua_newtable(L);
  install(L, "data");
  lua_setfield(L, -2, "data");
  lua_setfield(L, LUA_REGISTRYINDEX, "orrery");
}

}  // namespace

void open_environment(lua_State* L, const std::string& script_directory) {
  luaL_openlibs(L);
  lua_gc(L, LUA_GCINC, 0, 0, 0);
  ordinals() = {};
  define_tensor_class(L);
  define_host_class(L);
  define_state_classes(L);
  define_run_classes(L);
  define_func_class(L);
  define_draft_class(L);
  define_world_class(L);
  define_data_class(L);
  define_tool_classes(L);
  define_engine(L);
  seed_random(L);
  lua_pushglobaltable(L);
  set_sorted_iteration(L);
  set_require(L, script_directory);
  lua_pushcfunction(L, strict_load);
  lua_setfield(L, -2, "load");
  for (const char* name : {"loadfile", "dofile", "package"}) {
    lua_pushnil(L);
    lua_setfield(L, -2, name);
  }
  lua_pop(L, 1);
  make_strict_globals(L);
}

std::string read_script(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail(kUsageError, "{}: there is no such script", path);
  }
  constexpr uint64_t most = 64 << 20;
  return read_text(path, path, kUsageError, most);
}

void load_chunk(lua_State* L, const std::string& text, const std::string& chunk_name) {
  if (luaL_loadbufferx(L, text.data(), text.size(), chunk_name.c_str(), "t") != LUA_OK) {
    const std::string message = lua_tostring(L, -1);
    lua_pop(L, 1);
    throw Error(ORR_FAILED, message);
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &strict_key);
  lua_setupvalue(L, -2, 1);
}

}  // namespace orrery::lua
