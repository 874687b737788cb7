// SPDX-License-Identifier: Apache-2.0
#include "blame.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "operation.h"

namespace shared {
namespace {

constexpr size_t most_named = 8;
constexpr int64_t at_once_ns = 100'000'000;  // an answer that takes longer was waited for

// Hosts of before have no such entries.
bool knows_work(const orr_comm_boot& boot) {
  return boot.size > offsetof(orr_comm_boot, at_work) && boot.at_work;
}
bool tells_ends(const orr_comm_boot& boot) {
  return boot.size > offsetof(orr_comm_boot, waits) && boot.blame && boot.blamed && boot.waits;
}

int ask(const orr_comm_boot& boot, int rank, int64_t waited_ns, char* what, size_t capacity) {
  return knows_work(boot) ? boot.at_work(boot.store, rank, waited_ns, what, capacity) : 0;
}

struct Answers {
  std::vector<int> silent, late;
  bool busy = false;  // one is at work of its own
  std::string what;   // the first late one is at
  std::string gone;   // "rank 0 died": why nobody can be asked
};

// Asks a rank, and asks it again if it was waited for in vain: a machine may pause a process for as
// long as an answer may take, and a rank that lives would be named.
int ask_again(const orr_comm_boot& boot, int rank, int64_t waited_ns, char* what, size_t capacity) {
  const int64_t begun = now_ns();
  const int answer = ask(boot, rank, waited_ns, what, capacity);
  const bool in_vain = answer == 0 && now_ns() - begun > at_once_ns;
  return in_vain ? ask(boot, rank, waited_ns, what, capacity) : answer;
}

// One that is silent twice is enough: more questions would take longer than all may.
Answers ask_all(const orr_comm_boot& boot, const std::vector<int>& ranks, int64_t waited_ns) {
  Answers all;
  for (int r : ranks) {
    char text[256] = "";
    const int64_t begun = now_ns();
    const int answer = ask_again(boot, r, waited_ns, text, sizeof text);
    if (answer == 0) all.silent.push_back(r), all.gone = text;
    if (answer == 1 && all.late.empty()) all.late.push_back(r), all.what = text;
    all.busy |= answer == 2;
    if (answer == 0 && now_ns() - begun > at_once_ns) break;
  }
  return all;
}

std::string names_of(const std::vector<int>& ranks) {
  std::string names;
  for (size_t i = 0; i < ranks.size() && i < most_named; ++i)
    names += (i > 0 ? " and rank " : "rank ") + std::to_string(ranks[i]);
  if (ranks.size() > most_named)
    names += " and " + std::to_string(ranks.size() - most_named) + " more";
  return names + (ranks.size() == 1 ? " has" : " have");
}

// Who does not answer comes before who takes long: the latter may wait for it in its own way.
std::string sentence(const Answers& all, int64_t waited_ns, const std::string& rest) {
  if (all.silent.empty() && all.late.empty()) return "";
  if (!all.gone.empty()) return all.gone + rest;
  const bool late = all.silent.empty();
  return names_of(late ? all.late : all.silent) + " not answered for " + seconds(waited_ns) + rest +
         (late && !all.what.empty() ? "; it is " + all.what : "");
}

}  // namespace

std::string judge_wait(const orr_comm_boot& boot, const std::vector<int>& silent, int64_t waited_ns,
                       const orr_coll* current, const std::vector<int>& world_of) {
  const std::string where = in_operation(current);
  if (!silent.empty()) return sentence(ask_all(boot, silent, waited_ns), waited_ns, where);
  const bool named = current && paired(*current) && current->root_or_peer >= 0;
  const int first = world_of.front() == boot.rank ? world_of.back() : world_of.front();
  const int other = named ? world_of[static_cast<size_t>(current->root_or_peer)] : first;
  return "ranks " + std::to_string(other) + " and " + std::to_string(boot.rank) +
         " wait for each other since " + seconds(waited_ns) + where;
}

Wait::Wait(const orr_comm_boot& boot, const orr_coll* current)
    : boot_(boot),
      current_(current),
      deadline_(deadline_of(current, boot)),
      last_(now_ns()),
      allowed_(deadline_) {}

Wait::~Wait() {
  if (told_) boot_.waits(boot_.store, false);
}

void Wait::begin_anew() {
  waited_ = 0;
  allowed_ = deadline_;
}

std::string Wait::look(int rank) {
  const int64_t now = now_ns();
  waited_ += std::min(now - std::exchange(last_, now), int64_t{50'000'000});
  if (!told_ && tells_ends(boot_)) boot_.waits(boot_.store, told_ = true);
  if (waited_ < allowed_) return "";
  const int64_t waited = std::exchange(allowed_, allowed_ + deadline_);
  std::vector<int> others{rank};
  for (int r = 0; r < boot_.world_size; ++r)
    if (r != rank && r != boot_.rank && !boot_.dead(boot_.store, r)) others.push_back(r);
  const Answers all = ask_all(boot_, others, waited);
  const std::string where = in_operation(current_);
  if (all.silent.empty() && all.busy) return "";
  if (const std::string named = sentence(all, waited, where); !named.empty()) return named;
  const auto [low, high] = std::minmax(rank, boot_.rank);
  return "ranks " + std::to_string(low) + " and " + std::to_string(high) +
         " wait for each other since " + seconds(waited) + where;
}

void tell_end(const orr_comm_boot& boot, int32_t code, const std::string& why) {
  if (tells_ends(boot)) boot.blame(boot.store, code, why.c_str());
}

int32_t told_end(const orr_comm_boot& boot, std::string& why) {
  char text[1024];
  const int32_t code = tells_ends(boot) ? boot.blamed(boot.store, text, sizeof text) : 0;
  if (code != 0) why = text;
  return code;
}

Patience::Step Patience::step(int64_t waited_ns, int64_t deadline_ns) {
  if (!asked_) {
    if (waited_ns < std::max(deadline_ns, at_ns_)) return wait;
    asked_ = true;
    at_ns_ = waited_ns;
    waited_ns_ = waited_ns / deadline_ns * deadline_ns;
    return ask;
  }
  if (waited_ns - at_ns_ <= time_to_answer_ns) return wait;
  asked_ = false;
  at_ns_ = waited_ns + deadline_ns;
  return judge;
}

int64_t deadline_of(const orr_coll* current, const orr_comm_boot& boot) {
  return current && current->deadline_ns > 0 ? current->deadline_ns : boot.deadline_ns;
}

}  // namespace shared
