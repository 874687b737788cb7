// SPDX-License-Identifier: Apache-2.0
#include "launch/forming.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/work.h"
#include "launch/environment.h"
#include "launch/quiet.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// The watcher waits in these: a pause of this very process counts as two at most.
constexpr nanoseconds slice{300'000'000};

std::string seconds(int64_t ns) { return fmt::format("{:g} s", static_cast<double>(ns) * 1e-9); }

// Who leaves because of a dead rank is dead to the others: all say what the first one has found
// out, which the launcher tells everybody.
Error first_blamed(Store& store, const Error& own) {
  store.blame(own);
  for (int waits = 0; waits < 20 && !store.blamed(); ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return store.blamed().value_or(own);
}

}  // namespace

Forming::~Forming() {
  set(State::formed);
  if (watch_.joinable()) watch_.join();
}

void Forming::set(State state) {
  {
    std::lock_guard lock(mutex_);
    state_ = state;
  }
  changed_.notify_one();
}

void Forming::run(const std::function<void()>& body) {
  const Work work("forming the world", deadlines);
  try {
    store_.put(fmt::format("forms.{}", world_.rank), "");
  } catch (const Error& e) {
    if (e.code() != ORR_UNAVAILABLE) throw;
    can_ask_ = false;
  }
  {
    const AllSignalsBlocked quiet;
    watch_ = std::thread([this] { watch(); });
  }
  try {
    body();
  } catch (const Error& e) {
    if (e.code() == ORR_DEADLINE) {  // the library's own, which names nobody
      set(State::overdue);
      watch_.join();
      if (verdict_) throw *verdict_;
    }
    if (e.code() == ORR_RETRY && can_ask_) throw first_blamed(store_, e);
    throw;
  }
  set(State::formed);
  watch_.join();
}

// Returns when a deadline has passed, or the state is no longer `forming`, or another rank has
// found out whom to blame.
Forming::State Forming::wait_a_deadline() {
  Clock::time_point begun = Clock::now();
  std::unique_lock lock(mutex_);
  for (nanoseconds waited{0}; state_ == State::forming && waited.count() < deadline_ns();) {
    if (store_.blamed()) break;
    changed_.wait_for(lock, slice);
    const Clock::time_point now = Clock::now();
    waited += std::min(now - std::exchange(begun, now), 2 * slice);
  }
  return state_;
}

void Forming::watch() {
  for (int64_t waited = deadline_ns();; waited += deadline_ns()) {
    const State state = wait_a_deadline();
    if (state == State::formed) return;
    const std::optional<Error> verdict = judge(waited);
    if (verdict) return give_up(*verdict);
    if (state == State::overdue) return;
  }
}

// Whom to blame: the first rank to find out tells it to all, so that they say the same.
std::optional<Error> Forming::judge(int64_t waited_ns) {
  std::optional<Error> verdict = store_.blamed(), late;
  const bool too_long = waited_ns >= deadlines * deadline_ns();
  bool is_busy = false;
  for (int r = 0; r < world_.size && can_ask_ && !verdict; ++r) {
    std::string what;
    const int answer = r == world_.rank ? 1 : store_.at_work(r, waited_ns, what);
    is_busy |= answer == 2;
    if (answer == 0 && store_.dead(r))
      verdict = Error(ORR_RETRY, fmt::format("rank {} died while the world was forming", r));
    else if (answer == 0)
      verdict = Error(ORR_DEADLINE, fmt::format("rank {} has not answered for {} while the world "
                                                "was forming",
                                                r, seconds(deadline_ns())));
    else if (!what.empty())
      late = Error(ORR_DEADLINE, fmt::format("the world has not formed for {}, though all ranks "
                                             "answer; rank {} is {}",
                                             seconds(waited_ns), r, what));
  }
  if (!verdict && too_long && !is_busy && late) verdict = late;
  if (verdict && can_ask_) store_.blame(*verdict);
  if (!verdict && too_long && !can_ask_)
    verdict = Error(ORR_DEADLINE, fmt::format("rank {} is not through forming the world for {}: a "
                                              "rank is stopped, or did not come",
                                              world_.rank, seconds(waited_ns)));
  return verdict;
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
  _exit(verdict.code());
}

}  // namespace orrery
