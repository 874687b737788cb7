// SPDX-License-Identifier: Apache-2.0
#include "plugin/inside.h"

#include <orrery/types.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "plugin/host.h"

namespace orrery {
namespace {

// Writes to stderr, at once, so that the lines of ranks that crash together stay whole. A signal
// handler may call it; a failed write is ignored.
void tell(std::initializer_list<const char*> parts) {
  char line[1024];
  size_t n = 0;
  for (const char* part : parts)
    for (; *part && n < sizeof line; ++part) line[n++] = *part;
  if (write(STDERR_FILENO, line, n) < 0) return;
}

// exit() calls this on the thread that has called exit().
void at_exit() {
  const PluginCall& at = Inside::here();
  if (!at.plugin) return;
  std::fflush(nullptr);
  tell({"error: ", at.plugin, " has called exit() in its '", at.function,
        "': a plugin returns an error instead\n"});
  _exit(ORR_FAILED);
}

void at_signal(int signal) {
  const PluginCall& at = Inside::here();
  if (at.plugin)
    tell({"error: ", at.plugin, " crashed in its '", at.function, "': SIG", sigabbrev_np(signal),
          "\n"});
  raise(signal);  // takes its default effect when this handler returns
}

// The stack of a thread's signal handlers. One that it has already, of a sanitizer, stays.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
    const size_t bytes = static_cast<size_t>(std::max<long>(sysconf(_SC_SIGSTKSZ), 64 << 10));
    memory_ = std::make_unique<char[]>(bytes);
    now.ss_sp = memory_.get(), now.ss_size = bytes, now.ss_flags = 0;
    sigaltstack(&now, nullptr);
  }
  ~HandlerStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;
};

// The threads that have called a plugin and live. Never destroyed: threads end, and the watchdog
// looks, while the process ends.
struct KnownThreads {
  std::mutex mutex;
  uint64_t last = 0;
  std::map<uint64_t, const CallSign*> signs;  // by the thread's number
};
KnownThreads& known_threads() {
  static auto& all = *new KnownThreads;
  return all;
}

class KnownThread {
 public:
  explicit KnownThread(const CallSign& sign) {
    KnownThreads& all = known_threads();
    std::lock_guard lock(all.mutex);
    all.signs[number_ = ++all.last] = &sign;
  }
  ~KnownThread() {
    KnownThreads& all = known_threads();
    std::lock_guard lock(all.mutex);
    all.signs.erase(number_);
  }
  KnownThread(const KnownThread&) = delete;

 private:
  uint64_t number_;
};

}  // namespace

// Without memory for it a thread works all the same, and tries again at its next call: it may be
// one of the pool, from which no exception can leave.
void Inside::get_known() {
  try {
    static thread_local const HandlerStack stack;
    static thread_local const KnownThread thread(sign_);
    is_known_ = true;
  } catch (const std::bad_alloc&) {
  }
}

std::vector<CallUnderWay> Inside::under_way() {
  KnownThreads& all = known_threads();
  std::vector<CallUnderWay> calls;
  std::lock_guard lock(all.mutex);
  for (auto& [thread, sign] : all.signs) {
    const uint64_t entry = sign->entry.load(std::memory_order_acquire);
    const char* plugin = sign->plugin.load(std::memory_order_acquire);
    const char* function = sign->function.load(std::memory_order_acquire);
    if (plugin && sign->entry.load(std::memory_order_relaxed) == entry)
      calls.push_back({thread, entry, plugin, function});
  }
  return calls;
}

void watch_for_sudden_ends() {
  // Registered again for each plugin: handlers run in reverse order, so this one runs before the
  // destructors of objects that were made since the last call.
  std::atexit(at_exit);
  static bool watching = false;
  if (std::exchange(watching, true)) return;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction now, old;
    std::memset(&now, 0, sizeof now);
    now.sa_handler = at_signal;
    now.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
    // A handler that is there already, such as a sanitizer's, prints more, and stays.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
      sigaction(signal, &now, nullptr);
  }
}

orr_status* thrown(const char* what) {
  const PluginCall& at = Inside::here();
  return host_table().error(
      ORR_FAILED,
      fmt::format("{} threw in its '{}', where only a status may come back: {}",
                  at.plugin ? at.plugin : "a plugin", at.function ? at.function : "?", what)
          .c_str());
}

const char* kept_text(const std::string& text) {
  static auto& kept = *new std::deque<std::string>;
  return kept.emplace_back(text).c_str();
}

}  // namespace orrery
