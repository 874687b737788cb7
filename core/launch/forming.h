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
#include "launch/store.h"

namespace orrery {

class Forming {
 public:
  static constexpr int deadlines = 3;  // while all ranks answer: libraries take their time

  Forming(Store& store, const World& world) : store_(store), world_(world) {}
  ~Forming();
  Forming(const Forming&) = delete;

  // Runs `body`, which forms the world. Collective. Throws Error. If `body` does not return
  // although a rank no longer answers, or for too long, the process ends with ORR_DEADLINE and a
  // line that says so. Ranks without a common store cannot ask each other: theirs names nobody.
  // [main thread]
  void run(const std::function<void()>& body);

 private:
  enum class State { forming, formed, overdue };
  State wait_a_deadline();
  void watch();
  std::optional<Error> judge(int64_t waited_ns);
  void give_up(const Error& verdict);
  void set(State state);

  Store& store_;
  const World& world_;
  bool can_ask_ = true;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::forming;
  std::optional<Error> verdict_;  // that an overdue world has awaited
  std::thread watch_;
};

}  // namespace orrery
