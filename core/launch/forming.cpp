// SPDX-License-Identifier: Apache-2.0
#include "launch/forming.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/quiet.h"
#include "base/work.h"
#include "launch/environment.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// The watcher waits in slices. If this process is stopped for a while, that counts as two slices at
// most.
constexpr nanoseconds slice{300'000'000};

// The error to end with after the world has been forming for so long; none if it may still form.
std::optional<Error> judge(Store& store, const World& world, int64_t waited_ns) {
  if (const std::optional<Error> told = store.blamed()) return told;
  if (store.is_shared()) return store.judge(world, waited_ns).blame;
  if (waited_ns < forming_deadlines * deadline_ns()) return std::nullopt;
  return Error(ORR_DEADLINE, fmt::format("rank {} is not through forming the world for {:g} s: a "
                                         "rank is stopped, or did not come",
                                         world.rank, static_cast<double>(waited_ns) * 1e-9));
}

// Agrees with the other ranks on the error to end with. A rank that ends because of a dead one
// looks dead itself to the others, so all take the first error that was reported to the store's
// server, which sends it to all ranks.
Error agree_on(Store& store, const Error& own) {
  store.blame(own);
  for (int waits = 0; waits < 20 && store.is_shared() && !store.blamed(); ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return store.blamed().value_or(own);
}

// A thread that ends the process if the main thread does not return from a library.
class Watcher {
 public:
  Watcher(Store& store, const World& world) : store_(store), world_(world) {
    const AllSignalsBlocked quiet;
    thread_ = std::thread([this] { watch(); });
  }
  ~Watcher() { stop(); }
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void watch() {
    for (int64_t waited = deadline_ns(); !await_deadline(); waited += deadline_ns())
      if (const std::optional<Error> verdict = judge(store_, world_, waited))
        return end_with(*verdict);
  }

  // Returns when a deadline has passed or another rank has reported an error (false), or when the
  // watcher is to stop (true).
  bool await_deadline() {
    Clock::time_point begun = Clock::now();
    std::unique_lock lock(mutex_);
    for (nanoseconds waited{0}; !stopped_ && waited.count() < deadline_ns();) {
      if (store_.blamed()) break;
      changed_.wait_for(lock, slice);
      const Clock::time_point now = Clock::now();
      waited += std::min(now - std::exchange(begun, now), 2 * slice);
    }
    return stopped_;
  }

  void end_with(const Error& own) {
    std::lock_guard lock(mutex_);  // keeps the main thread, which gets the error too, from ending
    if (stopped_) return;
    const Error verdict = agree_on(store_, own);
    try {
      store_.report(verdict.what());
    } catch (const Error&) {
      // The server is gone too: the error is only printed.
    }
    std::fprintf(stderr, "error: %s\n", verdict.what());
    _exit(verdict.code());
  }

  Store& store_;
  const World& world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace

void form(Store& store, const World& world, const std::function<void()>& body) {
  const Work work(forming_work, forming_deadlines);
  Watcher watcher(store, world);
  try {
    body();
  } catch (const Error& e) {
    watcher.stop();
    std::optional<Error> verdict;
    if (e.code() == ORR_RETRY) verdict = e;
    if (e.code() == ORR_DEADLINE) verdict = judge(store, world, deadline_ns());  // e names no rank
    if (verdict) throw agree_on(store, *verdict);
    throw;
  }
}

}  // namespace orrery
