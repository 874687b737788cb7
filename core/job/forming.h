// SPDX-License-Identifier: Apache-2.0
//
// While the world forms: who does not come, or freezes on the way, is named within the deadline,
// even where the backend's own library would wait for it forever.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "job/rolls.h"
#include "job/store.h"

namespace orrery {

class Forming {
 public:
  Forming(Store& store, const World& world) : store_(store), rolls_(store, world) {}
  ~Forming();
  Forming(const Forming&) = delete;

  // Meets all ranks in the store, then runs `body`, which forms the world. Collective. Throws
  // Error. If `body` does not return although a rank no longer answers, the process ends with
  // ORR_DEADLINE and a line that names the rank. Ranks without a common store only run `body`.
  // [main thread]
  void run(const std::function<void()>& body);

 private:
  void watch();
  void await_roll();
  void give_up(const Error& verdict);
  void stop_watching();

  Store& store_;
  Rolls rolls_;  // the watcher's while it watches
  std::mutex mutex_;
  std::condition_variable changed_;
  enum class State { forming, formed, overdue } state_ = State::forming;
  std::optional<Error> verdict_;  // of the roll that an overdue world has awaited
  std::thread watch_;
};

}  // namespace orrery
