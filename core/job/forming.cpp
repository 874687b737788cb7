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
// Waiting is done in these: a pause of this very process counts as two at most.
constexpr int64_t slice = 300 * ms;
constexpr int rounds = 3;  // of the deadline, while all ranks answer: libraries take their time

constexpr const char* has_formed = "formed";  // rank 0's word instead of an outcome

// Throws the outcome of a roll, unless all were there.
void heed(const std::string& outcome) {
  if (!outcome.empty() && outcome != has_formed)
    throw Error(std::stoi(outcome), outcome.substr(outcome.find(' ') + 1));
}

std::string silent(int rank) {
  return fmt::format("rank {} has not answered for {:g} s while the world was forming", rank,
                     static_cast<double>(deadline_ns()) * 1e-9);
}

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

// Puts the outcome where all ranks look for it, and waits until they can have it: rank 0 may serve
// the store, and end.
void Forming::tell(const std::string& roll, const std::string& outcome) {
  try {
    store_.put(roll, outcome);
    store_.get(roll, 100 * ms);
  } catch (const Error&) {
    // Nobody is left to hear it.
  }
}

// Answers to questions that were given up may come in front of this one's, and what a rank has told
// before it died among them: a death is believed when as many have been heard.
std::string Forming::await(const std::string& key, int64_t& left_ns) {
  for (int heard = 0;;) {
    const int64_t now = std::clamp<int64_t>(left_ns, 0, slice);
    try {
      return store_.get(key, now);
    } catch (const Error& e) {
      if (e.code() == ORR_RETRY && heard++ < given_up_ + 1) continue;
      if (e.code() != ORR_DEADLINE) throw;
      ++given_up_;
      left_ns -= now;
      if (left_ns <= 0) throw;
    }
  }
}

// Who has ended may have told why: the outcome of a roll, or "".
std::string Forming::last_words(const std::string& roll) {
  try {
    int64_t left = slice;
    return await(roll, left);
  } catch (const Error&) {
    return "";
  }
}

// Rank 0 waits for all and tells them the outcome, "" or the code and the sentence that it ends
// with: their patience with that begins when it has come. Once it has formed, each waits for all
// itself. Who sees a rank die tells it in rank 0's place, so that all name the same. Throws if a
// rank is not there.
void Forming::call_roll(const std::string& roll, int64_t patience_ns) {
  int64_t left = patience_ns;
  int awaited = 0;
  std::string outcome;
  try {
    store_.put(fmt::format("{}.{}", roll, world_.rank), "");
    if (world_.rank != 0) {
      await(roll + ".0", left);
      left = patience_ns + 300 * ms;
      outcome = await(roll, left);
    }
    for (int r = 1; (world_.rank == 0 || outcome == has_formed) && r < world_.size; ++r)
      await(fmt::format("{}.{}", roll, awaited = r), left);
  } catch (const Error& e) {
    if (e.code() == ORR_RETRY) heed(last_words(roll));
    const std::string text = e.code() == ORR_DEADLINE ? silent(awaited) : e.what();
    tell(roll, fmt::format("{} {}", e.code(), text));
    throw Error(e.code(), text);
  }
  if (world_.rank == 0) tell(roll, "");
  heed(outcome);
}

// Others may be forming yet, and call rolls that this rank will hear no more.
void Forming::answer_later_rolls() try {
  for (int round = 1; round <= rounds; ++round) {
    store_.put(fmt::format("still.{}.{}", round, world_.rank), "");
    if (world_.rank == 0) store_.put(fmt::format("still.{}", round), has_formed);
  }
} catch (const Error&) {
  // Rank 0 may have formed and ended since, and its store with it: nobody forms any more.
}

void Forming::run(const std::function<void()>& body) {
  try {
    store_.put(fmt::format("forms.{}", world_.rank), "");
  } catch (const Error& e) {
    if (e.code() != ORR_UNAVAILABLE) throw;
    return body();
  }
  call_roll("here", deadline_ns());
  watch_ = std::thread([this] { watch(); });
  try {
    body();
  } catch (const Error& e) {
    if (e.code() != ORR_DEADLINE) throw;
    await_roll();
    throw;
  }
  stop_watching();
  answer_later_rolls();
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
  for (int round = 1; round <= rounds; ++round) {
    Clock::time_point begun = Clock::now();
    for (nanoseconds waited{0}; waited.count() < deadline_ns() + 300 * ms;) {
      std::unique_lock lock(mutex_);
      const auto formed = [this] { return state_ == State::formed; };
      if (changed_.wait_for(lock, nanoseconds(slice), formed)) return;
      const Clock::time_point now = Clock::now();
      waited += std::min(now - std::exchange(begun, now), nanoseconds(2 * slice));
    }
    try {
      call_roll(fmt::format("still.{}", round), 700 * ms);
    } catch (const Error& e) {
      return give_up(e);
    }
    std::lock_guard lock(mutex_);
    if (state_ == State::overdue) return;
  }
  give_up(Error(ORR_DEADLINE,
                fmt::format("the world has not formed for {:g} s, though all ranks answer",
                            rounds * static_cast<double>(deadline_ns()) * 1e-9)));
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
