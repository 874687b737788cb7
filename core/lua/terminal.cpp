// SPDX-License-Identifier: Apache-2.0
//
// What `orrery repl` (scripts/orrery/repl.lua) needs of the terminal: lines with history and
// completion, by libedit, and code that Ctrl-C interrupts. [main thread]
#include <editline/readline.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "lua/call.h"

namespace orrery::lua {
namespace {

volatile std::sig_atomic_t interrupted = 0;
lua_State* running = nullptr;  // whose code Ctrl-C interrupts
pthread_t main_thread;

void stop_hook(lua_State* L, lua_Debug*) {
  lua_sethook(L, nullptr, 0, 0);
  lua_pushliteral(L, "interrupted");
  lua_error(L);
}

// Lua allows a signal handler to set a hook; the next instruction then raises the error.
void on_interrupt(int signal) {
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, signal);
    return;
  }
  interrupted = 1;
  if (running) lua_sethook(running, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

// Handles SIGINT, from the first object on: between two lines Ctrl-C must not end the session.
// Blocked, it arrives only while wait() waits.
class Interrupts {
 public:
  explicit Interrupts(bool blocked) {
    main_thread = pthread_self();
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, nullptr);
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGINT);
    pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, &mask_);
  }
  ~Interrupts() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }
  Interrupts(const Interrupts&) = delete;

  // Waits for input; returns false if Ctrl-C came first.
  bool wait() const {
    sigset_t open = mask_;
    sigdelset(&open, SIGINT);
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (!interrupted && ppoll(&input, 1, nullptr, &open) < 0) {
    }
    return !interrupted;
  }

 private:
  sigset_t mask_{};
};

struct {
  const Function* complete = nullptr;
  std::vector<std::string> choices;
  bool done = false;
  char* line = nullptr;  // owned; null at the end of input
} now;

char* next_choice(const char*, int state) {
  static size_t at;
  if (state == 0) at = 0;
  return at < now.choices.size() ? strdup(now.choices[at++].c_str()) : nullptr;
}

// Asks the Lua function for what the name before the cursor may become.
char** complete(const char* typed, int, int end) {
  rl_attempted_completion_over = 1;
  lua_State* L = now.complete->state();
  const StackTop top(L);
  now.choices.clear();
  now.complete->push();
  push_text(L, std::string(rl_line_buffer, static_cast<size_t>(end)));
  if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1))
    now.choices = list_at(L, lua_gettop(L), [](lua_State* state, int at) -> std::string {
      return lua_isstring(state, at) ? lua_tostring(state, at) : "";
    });
  return now.choices.empty() ? nullptr : rl_completion_matches(typed, next_choice);
}

void take_line(char* line) { now.line = line, now.done = true; }

// A line without an editor: from a file or a pipe.
Pushed read_plain(lua_State* L) {
  char* text = nullptr;
  size_t room = 0;
  const ssize_t n = getline(&text, &room, stdin);
  if (n < 0)
    lua_pushnil(L);
  else
    push_text(L, std::string(text, static_cast<size_t>(n) - (text[n - 1] == '\n')));
  std::free(text);
  return {1};
}

// Pushes a line; nil at the end of input, false if Ctrl-C has discarded what was typed.
Pushed read_line(lua_State* L, const std::string& prompt, Index completer) {
  if (!isatty(STDIN_FILENO)) return read_plain(L);
  const Function function(L, completer);
  now = {&function, {}, false, nullptr};
  rl_attempted_completion_function = complete;
  rl_completer_word_break_characters = const_cast<char*>(" \t\n\"'`$><=;|&{}()+-*/%^#~[],?");
  rl_completion_append_character = 0;
  bool good = true;
  {
    const Interrupts interrupts(true);
    rl_callback_handler_install(prompt.c_str(), take_line);
    while (!now.done && (good = interrupts.wait())) rl_callback_read_char();
    rl_callback_handler_remove();
  }
  if (!good || !now.line) std::fputs("\n", stdout), std::fflush(stdout);
  if (!good)
    lua_pushboolean(L, false);
  else if (!now.line)
    lua_pushnil(L);
  else
    push_text(L, now.line);
  std::free(now.line);
  now = {};
  return {1};
}

// Calls a function; pushes whether it has ended well, then its results or the error.
Pushed attempt(lua_State* L, Index f) {
  const int base = lua_gettop(L);
  lua_pushcfunction(L, message_handler);
  lua_pushvalue(L, f);
  int status = LUA_OK;
  {
    const Interrupts interrupts(false);
    running = L;
    status = lua_pcall(L, 0, LUA_MULTRET, base + 1);
    running = nullptr;
  }
  lua_sethook(L, nullptr, 0, 0);
  push_value(L, status == LUA_OK);
  lua_replace(L, base + 1);
  return {lua_gettop(L) - base};
}

// Reads the lines of earlier sessions, or adds one. A session goes on where they cannot be kept.
void history(const std::string& path, const std::string& line) {
  if (line.empty()) {
    using_history();
    stifle_history(1000);
    read_history(path.c_str());
  } else {
    add_history(line.c_str());
    write_history(path.c_str());
  }
}

bool at_terminal() { return isatty(STDIN_FILENO); }

}  // namespace

std::vector<Api> terminal_api() {
  return {
      {"engine.read_line(prompt: string, complete: function) -> string | boolean | nil; A line of "
       "standard input, at a terminal with an editor in which Tab proposes the list "
       "`complete(text before the cursor)`; nil at its end, false if Ctrl-C was pressed.",
       call<read_line>},
      {"engine.attempt(f: function) -> boolean, any ...; Calls `f`, which Ctrl-C interrupts: true "
       "and its results, or false and the error.",
       call<attempt>},
      {"engine.history(path: string, line: string = ''); Adds a line to those of all sessions, in "
       "this file; without one reads them.",
       call<history>},
      {"engine.at_terminal() -> boolean; Whether somebody types the input.", call<at_terminal>},
  };
}

}  // namespace orrery::lua
