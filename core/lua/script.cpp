// SPDX-License-Identifier: Apache-2.0
#include "lua/script.h"
#include "base/config.h"
#include "base/places.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "edit/planner.h"
#include "lua/environment.h"
#include "lua/json.h"
#include "lua/stopping.h"
#include "lua/whereabouts.h"
#include "run/runtime.h"

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
    case kDoesNotFit:
    case ORR_UNAVAILABLE:
    case ORR_RETRY:
    case ORR_DEADLINE: return code;
    default: return 1;
  }
}

// The error as one of our programs ends with it.
Error with_exit_code(const Error& e) {
  return Error(e.code() == lua::kUsageError ? int(ORR_INVALID) : e.code(), e.what());
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

// What an error of the script adds of arguments that nothing has declared.
std::string hint_of_arguments(lua_State* L) {
  if (lua::given_script().arguments.empty()) return "";
  lua::push_library(L, "orrery.args", "hint");
  lua::protected_call(L, 0, 1);
  return lua_tostring(L, -1);
}

// Runs the script, or the loop of lines if there is none.
void run_chunk(lua_State* L, const std::string& path) {
  if (path.empty())
    lua::push_library(L, "orrery.repl", "run");
  else
    lua::load_chunk(L, lua::read_script(path), "@" + path);
  try {
    lua::protected_call(L, 0, 0);
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + hint_of_arguments(L));
  }
}

// Runs it in a Lua state that is closed before this returns, so that all its objects, also its
// programs, are gone.
void run_in_new_state(const std::string& path) {
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  const lua::Whereabouts whereabouts(L);
  lua::open_environment(L, path);
  run_chunk(L, path);
  for (const auto& [module, function] :
       {std::pair("orrery.between", "next"), std::pair("orrery.args", "settle")}) {
    lua::push_library(L, module, function);
    lua::protected_call(L, 0, 0);
  }
  Runtime::get().settle();
  finish_saves();
}

}  // namespace

int run_script(const std::string& path, const std::vector<std::string>& args) {
  lua::given_script() = {path, args};
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

std::string script_help(const std::string& path, const std::vector<std::string>& args) try {
  lua::given_script() = {path, args};
  planner().options = {{"help", true}};
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  lua::open_environment(L, path);
  lua::push_library(L, "orrery.script_help", "text");
  lua::protected_call(L, 0, 1);
  return lua_tostring(L, -1);
} catch (const Error& e) {
  throw with_exit_code(e);
}

void run_tool(const std::string& name, const nlohmann::json& options) try {
  const std::unique_ptr<lua_State, Closer> state(luaL_newstate());
  lua_State* L = state.get();
  lua::open_environment(L, "");
  lua::load_chunk(L, "require('orrery." + name + "')(...)", std::string(lua::kLibraryMark) + name);
  lua::push_json(L, options);
  lua::protected_call(L, 1, 0);
} catch (const Error& e) {
  throw with_exit_code(e);
}

std::string lua_library() {
  static const std::string found = own_directory(ORRERY_SOURCE_LUADIR, ORRERY_LUADIR);
  return found;
}

}  // namespace orrery
