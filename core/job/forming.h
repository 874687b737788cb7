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
#include "job/store.h"

namespace orrery {

class Forming {
 public:
  Forming(Store& store, const World& world) : store_(store), world_(world) {}
  ~Forming();
  Forming(const Forming&) = delete;

  // Meets all ranks in the store, then runs `body`, which forms the world. Collective. Throws
  // Error. If `body` does not return although a rank no longer answers, the process ends with
  // ORR_DEADLINE and a line that names the rank. Ranks without a common store only run `body`.
  // [main thread]
  void run(const std::function<void()>& body);

 private:
  std::string await(const std::string& key, int64_t& left_ns);
  void call_roll(const std::string& roll, int64_t patience_ns);
  std::string last_words(const std::string& roll);
  void tell(const std::string& roll, const std::string& outcome);
  void watch();
  void await_roll();
  void answer_later_rolls();
  void give_up(const Error& verdict);
  void stop_watching();

  Store& store_;
  const World& world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  enum class State { forming, formed, overdue } state_ = State::forming;
  std::optional<Error> verdict_;  // of the roll that an overdue world has awaited
  int given_up_ = 0;              // questions to the store, whose answers may still come
  std::thread watch_;
};

}  // namespace orrery
