// SPDX-License-Identifier: Apache-2.0
//
// Converts errors between C++ and Lua, and finds their place in the user's script.
#include "lua/layer.h"

#include "lua/objects.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace orrery::lua {
namespace {

struct Remembered {
  int code = ORR_FAILED;
  std::string message;
};

Remembered& remembered() {
  static Remembered last;
  return last;
}

const char plan_done_mark = 0;

bool in_library(const std::string& message) {
  return message.compare(0, std::strlen(kLibraryMark) - 1, kLibraryMark + 1) == 0;
}

// Whether the message begins "file:12: ".
bool has_position(const std::string& message) {
  for (size_t at = message.find(':'); at != std::string::npos; at = message.find(':', at + 1)) {
    size_t end = at + 1;
    while (end < message.size() && std::isdigit(static_cast<unsigned char>(message[end]))) ++end;
    if (end > at + 1 && message.compare(end, 2, ": ") == 0) return true;
    if (message.find(' ') < at) return false;
  }
  return false;
}

std::string with_position(lua_State* L, const std::string& message) {
  if (has_position(message) && !in_library(message)) return message;
  const std::string line = user_line(L);
  const std::string region = regions().empty() ? "" : regions().back() + ": ";
  return (line.empty() ? "" : line + ": ") + region + message;
}

// A hint for an error that Lua itself raises when an object of ours is used as a number: what the
// user can write instead.
std::string hint_for(lua_State* L, const std::string& message) {
  if (message.find("attempt to ") == message.npos && message.find("bad argument #") == message.npos)
    return "";
  const StackTop top(L);
  push_library(L, "orrery.hints", "error");
  push_text(L, message);
  lua_call(L, 1, 1);
  return lua_tostring(L, -1);
}

}  // namespace

std::string user_line(lua_State* L) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(L, level, &frame); ++level) {
    lua_getinfo(L, "l", &frame);
    if (frame.currentline < 0) continue;
    lua_getinfo(L, "S", &frame);
    if (std::strncmp(frame.source, kLibraryMark, std::strlen(kLibraryMark)) == 0) continue;
    const char* name = frame.source[0] == '@' ? frame.source + 1 : frame.short_src;
    return std::string(name).append(":").append(std::to_string(frame.currentline));
  }
  return "";
}

void raise(lua_State* L, int code, const std::string& message) {
  {
    const std::string full = with_position(L, message);
    remembered() = {code, full};
    lua_pushlstring(L, full.data(), full.size());
  }
  lua_error(L);
  std::abort();  // never reached: lua_error does not return, but is not declared so
}

void raise_plan_done(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&plan_done_mark));
  lua_error(L);
  std::abort();
}

bool is_plan_done(lua_State* L, int index) {
  return lua_islightuserdata(L, index) && lua_touserdata(L, index) == &plan_done_mark;
}

int error_code(const std::string& message) {
  const Remembered& last = remembered();
  return !last.message.empty() && message.compare(0, last.message.size(), last.message) == 0
             ? last.code
             : ORR_FAILED;
}

int message_handler(lua_State* L) {
  if (is_plan_done(L, 1)) return 1;
  size_t size = 0;
  const char* text = luaL_tolstring(L, 1, &size);
  std::string message(text, size);
  const std::string hint = hint_for(L, message);
  if (!hint.empty() && in_library(message)) message.erase(0, message.find(": ") + 2);
  message = with_position(L, message) + hint;
  if (std::getenv("ORRERY_TRACEBACK")) {
    luaL_traceback(L, L, nullptr, 1);
    message += std::string("\n") + lua_tostring(L, -1);
  }
  push_text(L, message);
  return 1;
}

void push_library(lua_State* L, const char* module, const char* function) {
  luaL_checkstack(L, 8, module);
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  lua_call(L, 1, 1);
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
}

void protected_call(lua_State* L, int n_args, int n_results) {
  const int handler = lua_gettop(L) - n_args;
  lua_pushcfunction(L, message_handler);
  lua_insert(L, handler);
  const int status = lua_pcall(L, n_args, n_results, handler);
  lua_remove(L, handler);
  if (status == LUA_OK) return;
  if (is_plan_done(L, -1)) {
    lua_pop(L, 1);
    throw PlanDone{};
  }
  if (status == LUA_ERRMEM) throw Error(ORR_FAILED, out_of_memory());
  const char* text = lua_tostring(L, -1);
  const std::string message = text ? text : "error without a message";
  lua_pop(L, 1);
  throw Error(error_code(message), message);
}

Function::Function(lua_State* L, int index) : L_(L) {
  lua_pushvalue(L, index);
  ref_ = std::shared_ptr<int>(new int(luaL_ref(L, LUA_REGISTRYINDEX)), [L](int* ref) {
    luaL_unref(L, LUA_REGISTRYINDEX, *ref);
    delete ref;
  });
}

void Function::push() const { lua_rawgeti(L_, LUA_REGISTRYINDEX, *ref_); }

}  // namespace orrery::lua
