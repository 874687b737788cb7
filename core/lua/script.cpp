// SPDX-License-Identifier: Apache-2.0
#include "lua/script.h"
#include "base/config.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lua/environment.h"
#include "lua/whereabouts.h"
#include "run/runtime.h"

namespace fs = std::filesystem;

namespace orrery {
namespace {

struct Closer {
  void operator()(lua_State* L) const { lua_close(L); }
};

// The exit code of the process for an error of this code.
int exit_code(int code) {
  switch (code) {
    case lua::kUsageError: return 2;
    case kMiscomputed:
    case ORR_UNAVAILABLE:
    case ORR_RETRY:
    case ORR_DEADLINE: return code;
    default: return 1;
  }
}

int report(int code, const std::string& message) {
  std::fflush(stdout);
  try {
    Runtime::get().report(message);
  } catch (const Error&) {
    // Reporting has failed, because the launcher or an observer is gone: the first error counts.
  }
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return exit_code(code);
}

// Runs the script, or the loop of lines if `path` is empty, in a Lua state that is closed before
// this returns, so that all its objects, also its programs, are gone.
void run_in_new_state(const std::string& path) {
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  const lua::Whereabouts whereabouts(L);
  const fs::path directory = fs::path(path).parent_path();
  lua::open_environment(L, directory.empty() ? "." : directory.string());
  if (path.empty())
    lua::push_library(L, "orrery.repl", "run");
  else
    lua::load_chunk(L, lua::read_script(path), "@" + path);
  lua::protected_call(L, 0, 0);
  lua::refuse_unread_arguments();
  Runtime::get().settle();
  finish_saves();
}

}  // namespace

int run_script(const std::string& path, const std::vector<std::string>& args) {
  lua::set_script_arguments(args);
  Runtime::get().observers().fact("run/script", 0, path);
  try {
    Runtime::get().open_store();
    run_in_new_state(path);
    if (Runtime::get().has_comm())
      Runtime::get().comm().drain();  // asynchronous collectives that the script did not wait for
    Runtime::get().close();
    return 0;
  } catch (const lua::PlanDone&) {
    return 0;
  } catch (const Error& error) {
    end_saves();
    return report(error.code(), error.what());
  }
}

int run_repl() { return run_script("", {}); }

std::string lua_manual(const std::string& function, const std::string& name) {
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  lua::open_environment(L, ".");
  lua::load_chunk(L, "local f, name = ... return require 'orrery.manual'[f](name)",
                  std::string(lua::kLibraryMark) + "help");
  lua::push_text(L, function);
  lua::push_text(L, name);
  lua::protected_call(L, 2, 1);
  return lua::to_text(L, -1, function);
}

void run_tool(const std::string& name, const std::vector<std::string>& arguments) {
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  lua::open_environment(L, ".");
  lua::load_chunk(L, "require('orrery." + name + "')(...)", std::string(lua::kLibraryMark) + name);
  for (const std::string& each : arguments) lua::push_text(L, each);
  try {
    lua::protected_call(L, static_cast<int>(arguments.size()), 0);
  } catch (const Error& e) {
    throw Error(e.code() == lua::kUsageError ? int(ORR_INVALID) : e.code(), e.what());
  }
}

void write_lua_stubs(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  for (const auto& [name, function] : {std::pair{"orrery.lua", "stubs"}, {"api.md", "page"}}) {
    const std::string path = directory + "/" + name;
    std::ofstream file(path);
    file << lua_manual(function);
    file.flush();
    if (!file) fail(ORR_FAILED, "{}: cannot write", path);
  }
}

std::string lua_library() {
  static const std::string found = [] {
    const fs::path program = fs::read_symlink("/proc/self/exe");
    for (fs::path at = program.parent_path(); at != at.parent_path(); at = at.parent_path()) {
      if (fs::exists(at / "meson-private")) return std::string(ORRERY_SOURCE_LUADIR);
    }
    const fs::path beside = program.parent_path().parent_path() / ORRERY_LUADIR;
    return fs::exists(beside) ? beside.string()
                              : (fs::path(ORRERY_PREFIX) / ORRERY_LUADIR).string();
  }();
  return found;
}

}  // namespace orrery
