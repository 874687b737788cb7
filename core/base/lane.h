// SPDX-License-Identifier: Apache-2.0
//
// A thread that runs functions in the order of their submission, while the submitting thread goes
// on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace orrery {

class Lane {
 public:
  static constexpr std::chrono::hours for_ever{1 << 20};

  // Work submitted earlier has smaller tickets and is done earlier.
  using Ticket = uint64_t;

  Lane() = default;
  ~Lane() { finish(); }
  Lane(const Lane&) = delete;

  // Starts the thread, which calls `first` first. Until then `submit` does the work itself.
  void start(std::function<void()> first = {});
  bool started() const { return thread_.joinable(); }

  // Never blocks once started. [any one thread]
  Ticket submit(std::function<void()> work);
  // Returns when the work is done. Once any work has thrown, the lane runs nothing more, and every
  // call throws that error. If no work is completed for as long as `patience`, throws `late` with
  // the code ORR_DEADLINE.
  void wait(Ticket ticket, std::chrono::nanoseconds patience = for_ever,
            const std::string& late = {});
  bool done(Ticket ticket) const;  // true also if it has failed [any thread]
  Ticket last() const;             // the ticket of the last submission [any thread]
  void drop();                     // forgets work that has not begun
  void finish();                   // does all work that was submitted, then ends the thread

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable posted_, finished_;
  std::deque<std::function<void()>> queue_;
  Ticket submitted_ = 0, completed_ = 0;
  std::exception_ptr error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace orrery
