// SPDX-License-Identifier: Apache-2.0
//
// Notes which function of which plugin each thread is in. A plugin that ends the process, by exit()
// or by a crash, is then named, and the exit code is not 0. The watchdog (watchdog.h) sees from
// another thread which calls go on and on.
#pragma once

#include <orrery/types.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace orrery {

// The function that a thread is in. Texts live as long as the process; `plugin` is NULL outside of
// all plugins.
struct PluginCall {
  const char* plugin;    // "strategy 'mine' (/path/orrery-strategy-mine.so)"
  const char* function;  // "transform"
  // It may wait for other ranks, or for their work: such waits have deadlines of their own, and the
  // watchdog does not look at them.
  bool waits = false;
};

// A call of a plugin that was under way when somebody looked. `thread` and `entry` name it: no
// other call of this process has both.
struct CallUnderWay {
  uint64_t thread, entry;
  const char *plugin, *function;
};

// What other threads see of a thread's call. `entry` changes before the names: whoever reads the
// same entry before and after the names has names of that entry.
struct CallSign {
  std::atomic<uint64_t> entry{0};
  std::atomic<const char*> plugin{nullptr}, function{nullptr};

  void show(const PluginCall& call) {
    entry.store(entry.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    function.store(call.function, std::memory_order_release);
    plugin.store(call.plugin, std::memory_order_release);
  }
  void clear() { plugin.store(nullptr, std::memory_order_release); }
};

// Notes that the thread is in `call` during this object's life. Costs a few stores.
class Inside {
 public:
  explicit Inside(const PluginCall& call)
      : before_(here_), shown_((!here_.plugin || here_.waits) && !call.waits) {
    here_ = call;
    if (!is_known_) get_known();
    if (shown_) sign_.show(call);
  }
  ~Inside() {
    here_ = before_;
    if (shown_) sign_.clear();
  }
  Inside(const Inside&) = delete;
  static const PluginCall& here() { return here_; }

  // The calls of all threads that are under way and do not wait for other ranks: of each thread the
  // outermost, or the outermost within a call that waits. [any thread]
  static std::vector<CallUnderWay> under_way();

 private:
  // Gives this thread a second stack, on which a crash is told when the first is full, and lets
  // other threads see its calls until it ends.
  static void get_known();
  static inline constinit thread_local PluginCall here_{nullptr, nullptr};
  static inline constinit thread_local CallSign sign_{};
  static inline constinit thread_local bool is_known_ = false;
  const PluginCall before_;
  const bool shown_;
};

// The status for an exception with the text `what` that the plugin at hand has thrown.
orr_status* thrown(const char* what);

// Calls a function of a plugin that returns a status. An exception becomes a status with its text.
template <class Call>
orr_status* caught(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::exception& e) {
    return thrown(e.what());
  } catch (...) {
    return thrown("something that is no std::exception");
  }
}

// From this call on, a process that ends inside a plugin first prints which. After exit() its code
// is ORR_FAILED; after a signal it ends by that signal. Called before each plugin is loaded.
// [main thread]
void watch_for_sudden_ends();

// A text that lives as long as the process.
const char* kept_text(const std::string& text);

}  // namespace orrery
