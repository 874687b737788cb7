// SPDX-License-Identifier: Apache-2.0
#include "plan/traffic.h"

#include <fmt/format.h>

#include "base/text.h"

namespace orrery {
namespace {

// The bytes that a rank sends in a step. Ranks that have the same plan may differ by the size of
// their share of a bucket.
uint64_t sent_by(const RankPlan& plan, const std::map<int, int64_t>& times, int rank) {
  uint64_t sum = 0;
  for (auto& [index, n] : times) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    sum += static_cast<uint64_t>(n) *
           e.sent_by(plan.mesh.coordinate(e.axis, rank), plan.mesh.size_of(e.axis));
  }
  return sum;
}

std::string sends_text(const RankPlan& plan, const std::map<int, int64_t>& times,
                       const std::vector<int>& ranks, const char* what) {
  std::map<uint64_t, std::vector<int>> by_bytes;
  for (int rank : ranks) by_bytes[sent_by(plan, times, rank)].push_back(rank);
  int64_t posts = 0;
  for (auto& [index, n] : times) posts += n;
  std::string text;
  for (auto& [bytes, who] : by_bytes)
    text += fmt::format("  sends   {:>14} bytes {} in {} operation{}{}\n", bytes, what, posts,
                        posts == 1 ? "" : "s", by_bytes.size() == 1 ? "" : ", " + ranks_text(who));
  return text;
}

std::string collectives_text(const RankPlan& plan, const std::vector<int>& ranks,
                             const char* what) {
  std::map<int, int64_t> times = times_posted(plan);
  std::erase_if(times,
                [&](auto& t) { return plan.exchanges[static_cast<size_t>(t.first)].is_copy(); });
  if (const Driving& own = plan.mesh.driving; times.empty() && own.on())
    return fmt::format("  sends   what strategy.{} says above, at times of its own\n", own.origin);
  if (times.empty()) return "  sends nothing\n";
  std::string text = sends_text(plan, times, ranks, what);
  for (auto& [index, n] : times) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    text += fmt::format("    {:<12} {}{}  {} x {}", e.name, n == 1 ? "" : fmt::format("{} x ", n),
                        collective_name(e.op), e.count, dtype_name(e.dtype));
    if (e.is_bucket())
      text +=
          fmt::format("  {} tensors  {} node{}", e.totals.size(), e.nodes, e.nodes == 1 ? "" : "s");
    text += fmt::format("  sends {} bytes  by {} {}\n", e.bytes_sent * static_cast<uint64_t>(n),
                        e.origin, e.where.empty() ? "" : "(" + e.where + ")");
  }
  return text;
}

// The text about copies between the arena and other tiers.
std::string copies_text(const RankPlan& plan) {
  struct Moved {
    uint64_t in = 0, out = 0;
    int64_t copies = 0;
  };
  std::map<Tier, Moved> moved;
  for (auto& [index, n] : times_posted(plan)) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    if (!e.is_copy()) continue;
    Moved& m = moved[e.tier];
    (e.to_tier ? m.out : m.in) += e.bytes() * static_cast<uint64_t>(n);
    m.copies += n;
  }
  std::string text;
  for (auto& [tier, m] : moved)
    text += fmt::format("  copies  {:>14} bytes a step from {} and {} back, in {} copies\n", m.in,
                        tier == Tier::disk ? "disk" : "host memory", m.out, m.copies);
  return text;
}

std::string predicted_text(const RankPlan& plan, const std::vector<StrategyUse>& stack, int rank) {
  std::string text;
  for (const Prediction& p : predictions(plan, stack, rank))
    if (p.counted + p.predicted > 0)
      text += fmt::format(
          "  predicted by {}: {} bytes sent{}\n", p.strategy, p.predicted,
          p.predicted == p.counted ? ", as counted" : fmt::format(", but counted {}", p.counted));
  return text;
}

}  // namespace

std::string traffic_text(const RankPlan& plan, const std::vector<int>& ranks,
                         const std::vector<StrategyUse>& stack, const char* what) {
  std::string text = collectives_text(plan, ranks, what) + copies_text(plan);
  return plan.bytes_sent() ? text + predicted_text(plan, stack, ranks.front()) : text;
}

const char* collective_name(int32_t op) {
  switch (op) {
    case 0: return "copy";
    case ORR_COLL_BROADCAST: return "broadcast";
    case ORR_COLL_ALL_REDUCE: return "all_reduce";
    case ORR_COLL_REDUCE_SCATTER: return "reduce_scatter";
    case ORR_COLL_ALL_GATHER: return "all_gather";
    case ORR_COLL_ALL_TO_ALL: return "all_to_all";
    case ORR_COLL_SEND: return "send";
    case ORR_COLL_RECV: return "recv";
    case ORR_COLL_TREE_ALL_REDUCE: return "tree all_reduce";
    case ORR_COLL_TREE_REDUCE_SCATTER: return "tree reduce_scatter";
    default: return "exchange";
  }
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (size_t i = 0, j; i < ranks.size(); i = j) {
    for (j = i + 1; j < ranks.size() && ranks[j] == ranks[j - 1] + 1;) ++j;
    runs.push_back(j == i + 1 ? fmt::format("{}", ranks[i])
                              : fmt::format("{}-{}", ranks[i], ranks[j - 1]));
  }
  constexpr size_t few = 8;
  if (runs.size() > few) {
    runs.resize(few);
    runs.push_back(fmt::format("... ({} in all)", ranks.size()));
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", join(runs, ", "));
}

}  // namespace orrery
