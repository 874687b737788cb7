// SPDX-License-Identifier: Apache-2.0
//
// Tells of a plugin's call that does not come back: no crash and no error says that it is in an
// endless loop. It may also just take long, so that it is only told.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/inside.h"

namespace orrery {

// How long calls have been under way, from one look to the next.
class CallAges {
 public:
  using Time = std::chrono::nanoseconds;
  struct Aged {
    const char *plugin, *function;
    Time age;
    std::string text() const;  // "in 'launch' of kernel 'x' (/path.so) for 30 s"
  };

  explicit CallAges(Time deadline) : deadline_(deadline) {}

  // Takes the calls that are under way `passed` after the last look. Returns those to tell of now:
  // they have lasted for a deadline, and twice as long as when they were told of last. The threads
  // of a pool that are in one function of one plugin count as one call.
  std::vector<Aged> look(const std::vector<CallUnderWay>& calls, Time passed);
  // The oldest call at the last look.
  std::optional<Aged> oldest() const;

 private:
  struct Age {
    const char *plugin, *function;
    Time age{0}, told{0};
  };
  const Time deadline_;
  std::map<std::pair<uint64_t, uint64_t>, Age> ages_;  // by thread and entry
};

// A thread that looks during this object's life, prints lines on stderr, and from 3/4 of the
// deadline on lets this rank answer to others which plugin it is in (base/work.h).
class Watchdog {
 public:
  // `who` begins the lines: "rank 1". [main thread]
  Watchdog(std::string who, int64_t deadline_ns);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

 private:
  void watch();
  void look(CallAges::Time passed);

  const std::string who_;
  const CallAges::Time deadline_, period_;
  CallAges ages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace orrery
