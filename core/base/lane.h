// SPDX-License-Identifier: Apache-2.0
//
// One thread that does work in the order of its submission, while the one that submits goes on.
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

  // From now on work is done by a thread, which calls `first` first; until then `submit` does it.
  void start(std::function<void()> first = {});
  bool started() const { return thread_.joinable(); }

  // Never blocks once started. [any one thread]
  Ticket submit(std::function<void()> work);
  // Returns when the work is done; throws, the same again and again, once any work has thrown.
  // After that nothing more is done: what was submitted counts as done. That nothing was done for
  // as long as `patience` is an error too: `late`, with the code ORR_DEADLINE.
  void wait(Ticket ticket, std::chrono::nanoseconds patience = for_ever,
            const std::string& late = {});
  bool done(Ticket ticket) const;  // or failed [any thread]
  Ticket last() const;             // the ticket of what was submitted last [any thread]
  void drop();                     // forgets what has not begun
  void finish();                   // does what has been submitted, and ends the thread

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
