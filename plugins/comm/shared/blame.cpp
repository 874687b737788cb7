// SPDX-License-Identifier: Apache-2.0
#include "blame.h"

#include <algorithm>

#include "operation.h"

namespace shared {
namespace {

constexpr size_t most_named = 8;

// Hosts of before have no such entry.
int ask(const orr_comm_boot& boot, int rank, int64_t waited_ns, char* what, size_t capacity) {
  if (boot.size < sizeof boot || !boot.at_work) return 0;
  return boot.at_work(boot.store, rank, waited_ns, what, capacity);
}

std::string names_of(const std::vector<int>& ranks) {
  std::string names;
  for (size_t i = 0; i < ranks.size() && i < most_named; ++i)
    names += (i > 0 ? " and rank " : "rank ") + std::to_string(ranks[i]);
  if (ranks.size() > most_named)
    names += " and " + std::to_string(ranks.size() - most_named) + " more";
  return names + (ranks.size() == 1 ? " has" : " have");
}

}  // namespace

// Who does not answer comes before who takes long: the latter may wait for it in its own way. A
// question that was waited for in vain is enough: more would take longer than all may.
std::string judge(const orr_comm_boot& boot, const std::vector<int>& absent, int64_t waited_ns,
                  const std::string& rest) {
  constexpr int64_t at_once = 100000000;
  std::vector<int> silent, late;
  std::string what;
  for (int r : absent) {
    char text[256] = "";
    const int64_t begun = now_ns();
    const int answer = ask(boot, r, waited_ns, text, sizeof text);
    if (answer == 0) silent.push_back(r);
    if (answer == 1 && late.empty()) late.push_back(r), what = text;
    if (answer == 0 && now_ns() - begun > at_once) break;
  }
  if (silent.empty() && late.empty()) return "";
  if (!silent.empty()) what.clear();
  return names_of(silent.empty() ? late : silent) + " not answered for " + seconds(waited_ns) +
         rest + (what.empty() ? "" : "; it is " + what);
}

std::string judge_wait(const orr_comm_boot& boot, const std::vector<int>& silent, int64_t waited_ns,
                       const orr_coll* current, const std::vector<int>& world_of) {
  const std::string where = in_operation(current);
  if (!silent.empty()) return judge(boot, silent, waited_ns, where);
  const bool named = current && paired(*current) && current->root_or_peer >= 0;
  const int first = world_of.front() == boot.rank ? world_of.back() : world_of.front();
  const int other = named ? world_of[static_cast<size_t>(current->root_or_peer)] : first;
  return "ranks " + std::to_string(other) + " and " + std::to_string(boot.rank) +
         " wait for each other since " + seconds(waited_ns) + where;
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

bool lives(const orr_comm_boot& boot, int rank) {
  char what[1];
  return ask(boot, rank, 0, what, sizeof what) != 0;
}

}  // namespace shared
