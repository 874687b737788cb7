// SPDX-License-Identifier: Apache-2.0
//
// Notes which function of which plugin each thread is in. A plugin that ends the process, by exit()
// or by a crash, is then named, and the exit code is not 0.
#pragma once

#include <orrery/types.h>

#include <exception>
#include <string>

namespace orrery {

// The function that a thread is in. Texts live as long as the process; `plugin` is NULL outside of
// all plugins.
struct PluginCall {
  const char* plugin;    // "strategy 'mine' (/path/orrery-strategy-mine.so)"
  const char* function;  // "transform"
};

// Notes that the thread is in `call` during this object's life. Costs a few stores.
class Inside {
 public:
  explicit Inside(const PluginCall& call) : before_(here_) {
    here_ = call;
    if (!has_stack_) get_stack();
  }
  ~Inside() { here_ = before_; }
  Inside(const Inside&) = delete;
  static const PluginCall& here() { return here_; }

 private:
  // Gives this thread a second stack, on which a crash is told when the first is full.
  static void get_stack();
  static inline constinit thread_local PluginCall here_{nullptr, nullptr};
  static inline constinit thread_local bool has_stack_ = false;
  const PluginCall before_;
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
