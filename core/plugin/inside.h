// SPDX-License-Identifier: Apache-2.0
//
// Which plugin a thread is in, and in which of its functions: so that one that ends the process, by
// exit() or by a crash, is named, and does not end it with code 0.
#pragma once

#include <orrery/types.h>

#include <exception>
#include <string>

namespace orrery {

// Where a thread is. Texts live as long as the process; `plugin` is NULL outside of all plugins.
struct PluginCall {
  const char* plugin;    // "strategy 'mine' (/path/orrery-strategy-mine.so)"
  const char* function;  // "transform"
};

// The thread is there until the object goes. Costs a few stores.
class Inside {
 public:
  explicit Inside(const PluginCall& call) : before_(here_) { here_ = call; }
  ~Inside() { here_ = before_; }
  Inside(const Inside&) = delete;
  static const PluginCall& here() { return here_; }

 private:
  static inline constinit thread_local PluginCall here_{nullptr, nullptr};
  const PluginCall before_;
};

orr_status* thrown(const char* what);

// Calls a function of a plugin that returns a status: what it throws becomes one, with its words.
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

// From now on a process that ends inside of a plugin says so first: by exit() with code ORR_FAILED,
// by a signal with that signal. Called before each plugin is loaded. [main thread]
void watch_for_sudden_ends();

// A text that lives as long as the process.
const char* kept_text(const std::string& text);

}  // namespace orrery
