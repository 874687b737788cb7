// SPDX-License-Identifier: Apache-2.0
#include "job/rolls.h"

#include <algorithm>

#include "base/error.h"
#include "job/environment.h"

namespace orrery {
namespace {

constexpr int64_t ms = 1'000'000;
// An answer is awaited in these: a pause of this very process counts as one.
constexpr int64_t slice = 300 * ms;

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

bool Rolls::open() try {
  store_.put(fmt::format("forms.{}", world_.rank), "");
  return true;
} catch (const Error& e) {
  if (e.code() != ORR_UNAVAILABLE) throw;
  return false;
}

void Rolls::call_first() { call("here", deadline_ns()); }

void Rolls::call(int round) { call(fmt::format("still.{}", round), 700 * ms); }

// Puts the outcome where all ranks look for it, and waits until they can have it: rank 0 may serve
// the store, and end.
void Rolls::tell(const std::string& roll, const std::string& outcome) {
  try {
    store_.put(roll, outcome);
    store_.get(roll, 100 * ms);
  } catch (const Error&) {
    // Nobody is left to hear it.
  }
}

// Answers to questions that were given up may come in front of this one's, and what a rank has told
// before it died among them: a death is believed when as many have been heard.
std::string Rolls::await(const std::string& key, int64_t& left_ns) {
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
std::string Rolls::last_words(const std::string& roll) {
  try {
    int64_t left = slice;
    return await(roll, left);
  } catch (const Error&) {
    return "";
  }
}

// Rank 0 waits for all and tells them the outcome, "" or the code and the sentence that it ends
// with: their patience with that begins when it has come. Once it has formed, each waits for all
// itself. Who sees a rank die tells it in rank 0's place, so that all name the same.
void Rolls::call(const std::string& roll, int64_t patience_ns) {
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

void Rolls::answer_later() try {
  for (int round = 1; round <= rounds; ++round) {
    store_.put(fmt::format("still.{}.{}", round, world_.rank), "");
    if (world_.rank == 0) store_.put(fmt::format("still.{}", round), has_formed);
  }
} catch (const Error&) {
  // Rank 0 may have formed and ended since, and its store with it: nobody forms any more.
}

}  // namespace orrery
