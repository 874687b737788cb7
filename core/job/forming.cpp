// SPDX-License-Identifier: Apache-2.0
#include "job/forming.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "job/environment.h"

namespace orrery {
namespace {

using std::chrono::nanoseconds;

constexpr int64_t ms = 1'000'000;
constexpr int64_t slice =
    300 * ms;              // waiting is counted in these: a pause of this very process is none
constexpr int rounds = 3;  // of the deadline, while all ranks answer: libraries take their time

constexpr const char* has_formed = "formed";  // rank 0's word instead of an outcome

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

// Rank 0 waits for all and tells them the outcome, "" or the code and the sentence that it ends
// with; once it has formed, each waits for all itself. Who sees a rank die tells it in its place,
// so that all name the same. Throws if a rank is not there.
void Forming::call_roll(const std::string& roll, int64_t patience_ns) {
  int64_t left = patience_ns + (world_.rank == 0 ? 0 : 300 * ms);
  int awaited = 0;
  std::string outcome;
  try {
    store_.put(fmt::format("{}.{}", roll, world_.rank), "");
    if (world_.rank != 0) outcome = await(roll, left);
    const bool alone = outcome == has_formed;
    for (int r = 1; (world_.rank == 0 || alone) && r < world_.size; ++r)
      await(fmt::format("{}.{}", roll, awaited = r), left);
    if (alone) return;
  } catch (const Error& e) {
    const std::string text = e.code() == ORR_DEADLINE ? silent(awaited) : e.what();
    tell(roll, fmt::format("{} {}", e.code(), text));
    throw Error(e.code(), text);
  }
  if (world_.rank == 0) tell(roll, "");
  if (!outcome.empty()) throw Error(std::stoi(outcome), outcome.substr(outcome.find(' ') + 1));
}

// Others may be forming yet, and call rolls that this rank will hear no more.
void Forming::answer_later_rolls() {
  for (int round = 1; round <= rounds; ++round) {
    store_.put(fmt::format("still.{}.{}", round, world_.rank), "");
    if (world_.rank == 0) store_.put(fmt::format("still.{}", round), has_formed);
  }
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
    for (int64_t waited = 0; waited < deadline_ns() + 300 * ms; waited += slice) {
      std::unique_lock lock(mutex_);
      const auto formed = [this] { return state_ == State::formed; };
      if (changed_.wait_for(lock, nanoseconds(slice), formed)) return;
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
