// SPDX-License-Identifier: Apache-2.0
#include "blame.h"

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

bool lives(const orr_comm_boot& boot, int rank) {
  char what[1];
  return ask(boot, rank, 0, what, sizeof what) != 0;
}

}  // namespace shared
