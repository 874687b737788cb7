// SPDX-License-Identifier: Apache-2.0
#include "lua/whereabouts.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "base/work.h"
#include "lua/layer.h"

namespace orrery::lua {
namespace {

std::atomic<lua_State*> script{nullptr};
std::mutex mutex;
std::condition_variable changed;
std::string line;
uint64_t looks = 0;

// The hook that is replaced while a line is looked up: that of a trace (lua/conditions.h).
lua_Hook other_hook = nullptr;
int other_mask = 0;

void look(lua_State* L, lua_Debug*) {
  lua_sethook(L, other_hook, other_mask, 0);
  std::string now = user_line(L);
  {
    std::lock_guard lock(mutex);
    line.swap(now);
    ++looks;
  }
  changed.notify_all();
}

// A signal handler. Of Lua it may only call the functions that get and set hooks.
void set_look(int) {
  lua_State* L = script;
  if (!L || lua_gethook(L) == look) return;
  other_hook = lua_gethook(L), other_mask = lua_gethookmask(L);
  lua_sethook(L, look, LUA_MASKCOUNT, 1);
}

// The line; "" while the script is in a function that is not written in Lua.
std::string find(pthread_t main) {
  std::unique_lock lock(mutex);
  const uint64_t before = looks;
  pthread_kill(main, SIGURG);
  const bool seen =
      changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return looks != before; });
  return seen ? line : "";
}

}  // namespace

Whereabouts::Whereabouts(lua_State* L) {
  script = L;
  struct sigaction action {};
  action.sa_handler = set_look;
  action.sa_flags = SA_RESTART;
  sigaction(SIGURG, &action, nullptr);
  set_script_line([main = pthread_self()] { return find(main); });
}

Whereabouts::~Whereabouts() {
  set_script_line(nullptr);
  script = nullptr;
}

}  // namespace orrery::lua
