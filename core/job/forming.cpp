// SPDX-License-Identifier: Apache-2.0
#include "job/forming.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "job/environment.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int64_t ms = 1'000'000;
// The watcher waits in these: a pause of this very process counts as two at most.
constexpr int64_t slice = 300 * ms;

}  // namespace

Forming::~Forming() { stop_watching(); }

void Forming::stop_watching() {
  {
    std::lock_guard lock(mutex_);
    state_ = State::formed;
  }
  changed_.notify_one();
  if (watch_.joinable()) watch_.join();
}

void Forming::run(const std::function<void()>& body) {
  if (!rolls_.open()) return body();
  rolls_.call_first();
  watch_ = std::thread([this] { watch(); });
  try {
    body();
  } catch (const Error& e) {
    if (e.code() != ORR_DEADLINE) throw;
    await_roll();
    throw;
  }
  stop_watching();
  rolls_.answer_later();
}

// The library's own deadline has passed and names nobody: the next roll does. The watcher calls it
// at the time that all ranks call it; a roll of this rank's own would find the others elsewhere.
void Forming::await_roll() {
  {
    std::lock_guard lock(mutex_);
    state_ = State::overdue;
  }
  watch_.join();
  if (verdict_) throw *verdict_;
}

void Forming::watch() {
  for (int round = 1; round <= Rolls::rounds; ++round) {
    Clock::time_point begun = Clock::now();
    for (nanoseconds waited{0}; waited.count() < deadline_ns() + 300 * ms;) {
      std::unique_lock lock(mutex_);
      const auto formed = [this] { return state_ == State::formed; };
      if (changed_.wait_for(lock, nanoseconds(slice), formed)) return;
      const Clock::time_point now = Clock::now();
      waited += std::min(now - std::exchange(begun, now), nanoseconds(2 * slice));
    }
    try {
      rolls_.call(round);
    } catch (const Error& e) {
      return give_up(e);
    }
    std::lock_guard lock(mutex_);
    if (state_ == State::overdue) return;
  }
  give_up(Error(ORR_DEADLINE,
                fmt::format("the world has not formed for {:g} s, though all ranks answer",
                            Rolls::rounds * static_cast<double>(deadline_ns()) * 1e-9)));
}

// Unless the main thread awaits the verdict, it is inside of a library that does not come back.
void Forming::give_up(const Error& verdict) {
  std::lock_guard lock(mutex_);
  if (state_ == State::overdue) verdict_ = verdict;
  if (state_ != State::forming) return;
  try {
    store_.report(verdict.what());
  } catch (const Error&) {
    // The launcher is gone too: the line below is what is left to say.
  }
  std::fprintf(stderr, "error: %s\n", verdict.what());
  _exit(ORR_DEADLINE);
}

}  // namespace orrery
