// SPDX-License-Identifier: Apache-2.0
#include "lua/script.h"
#include "base/config.h"
#include "base/places.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lua/environment.h"
#include "lua/json.h"
#include "lua/stopping.h"
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
    case lua::stopped: return ORR_RETRY;
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
    Runtime::get().report(message, code == lua::stopped);
  } catch (const Error&) {
    // Reporting has failed, because the launcher or an observer is gone: the first error counts.
  }
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return exit_code(code);
}

// Parts from the other ranks in order, because all end together: a launcher of MPI kills those that
// it has not seen part.
void part() try { Runtime::get().close(); } catch (const Error&) {
  // A rank went meanwhile: nobody is left to part from.
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
  lua::push_library(L, "orrery.between", "next");
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
    const int code = report(error.code(), error.what());
    if (error.code() == lua::stopped) part();
    return code;
  }
}

int run_repl() { return run_script("", {}); }

void run_tool(const std::string& name, const nlohmann::json& options) try {
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  lua::open_environment(L, ".");
  lua::load_chunk(L, "require('orrery." + name + "')(...)", std::string(lua::kLibraryMark) + name);
  lua::push_json(L, options);
  lua::protected_call(L, 1, 0);
} catch (const Error& e) {
  throw Error(e.code() == lua::kUsageError ? int(ORR_INVALID) : e.code(), e.what());
}

std::string lua_library() {
  static const std::string found = own_directory(ORRERY_SOURCE_LUADIR, ORRERY_LUADIR);
  return found;
}

}  // namespace orrery
