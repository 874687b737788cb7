// SPDX-License-Identifier: Apache-2.0
#include "run/plan_text.h"

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "lower/lower.h"

namespace orrery {
namespace {

// Ranks whose leaves complete the same tree nodes run the same program: one plan serves them all.
struct Kind {
  int64_t leaves, nodes;
  bool operator<(const Kind& o) const { return std::tie(leaves, nodes) < std::tie(o.leaves, o.nodes); }
};

std::map<std::string, uint64_t> peak_by_category(const RankPlan& plan) {
  std::map<int, uint64_t> at_step;
  int peak_step = 0;
  for (int step = 0; step <= static_cast<int>(plan.schedule.size()); ++step) {
    uint64_t alive = 0;
    for (const Storage& s : plan.storages)
      if (s.region == Region::arena && s.first <= step && step <= s.last) alive += s.bytes;
    at_step[step] = alive;
    if (alive > at_step[peak_step]) peak_step = step;
  }
  std::map<std::string, uint64_t> parts;
  for (const Storage& s : plan.storages)
    if (s.region == Region::arena && s.first <= peak_step && peak_step <= s.last && s.bytes)
      parts[s.category] += s.bytes;
  return parts;
}

std::string memory_text(const RankPlan& plan) {
  std::map<std::string, uint64_t> states;
  for (const Storage& s : plan.storages)
    if (s.region == Region::state) states[s.category] += s.bytes;
  std::string text = fmt::format("  memory  {:>14} bytes  {:>10}\n", plan.state_bytes + plan.arena_bytes + plan.comm_bytes,
                                 human_bytes(static_cast<double>(plan.state_bytes + plan.arena_bytes + plan.comm_bytes)));
  auto line = [&](const std::string& name, uint64_t bytes, const char* note) {
    text += fmt::format("    {:<18} {:>14}  {:>10}  {}\n", name, bytes, human_bytes(static_cast<double>(bytes)), note);
  };
  for (auto& [name, bytes] : states) line(name, bytes, "");
  line("buckets", plan.comm_bytes, "registered with the comm backend");
  line("arena peak", plan.arena_bytes, "of it, when it is fullest:");
  for (auto& [name, bytes] : peak_by_category(plan)) line("  " + name, bytes, "");
  return text;
}

// "rank 3", "ranks 0-2, 5": runs of consecutive ranks, the first few of them.
std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (size_t i = 0, j; i < ranks.size(); i = j) {
    for (j = i + 1; j < ranks.size() && ranks[j] == ranks[j - 1] + 1;) ++j;
    runs.push_back(j == i + 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[j - 1]));
  }
  constexpr size_t few = 8;
  if (runs.size() > few) {
    runs.resize(few);
    runs.push_back(fmt::format("... ({} in all)", ranks.size()));
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", join(runs, ", "));
}

// Shares of a bucket may differ by a cache line, so ranks of one plan may send a little more or less.
std::string sends_text(const RankPlan& plan, const std::vector<int>& ranks) {
  std::map<uint64_t, std::vector<int>> by_bytes;
  for (int rank : ranks) {
    uint64_t sum = 0;
    for (const Bucket& b : plan.buckets) sum += bytes_sent(b, rank);
    by_bytes[sum].push_back(rank);
  }
  std::string text;
  for (auto& [bytes, who] : by_bytes)
    text += fmt::format("  sends   {:>14} bytes a step in {} collective{}{}\n", bytes, plan.buckets.size(),
                        plan.buckets.size() == 1 ? "" : "s",
                        by_bytes.size() == 1 ? "" : ", " + ranks_text(who));
  return text;
}

std::string collectives_text(const RankPlan& plan, const std::vector<int>& ranks) {
  if (plan.buckets.empty()) return "  sends nothing\n";
  std::string text = sends_text(plan, ranks);
  for (const Bucket& b : plan.buckets)
    text += fmt::format("    {:<12} tree all_reduce  {} x {}  {} tensors  {} node{}  sends {} bytes  by {} {}\n",
                        b.name, b.count, dtype_name(b.dtype), b.totals.size(), b.nodes, b.nodes == 1 ? "" : "s",
                        b.bytes_sent, b.cause, b.where.empty() ? "" : "(" + b.where + ")");
  return text;
}

std::string predicted_text(const RankPlan& plan, const Blueprint& b, const std::vector<StrategyUse>& stack, int rank) {
  uint64_t predicted = 0, counted = 0;
  for (const Bucket& bucket : plan.buckets) {
    PredictRequest request;
    request.rank = rank;
    request.reduced_elements = static_cast<uint64_t>(bucket.count);
    request.reduced_bytes = request.reduced_elements * static_cast<uint64_t>(orr_dtype_bytes(bucket.dtype));
    request.nodes = bucket.nodes;
    predicted += predict_bytes(stack, b.spread, request);
    counted += bucket.bytes_sent;
  }
  return fmt::format("  predicted by the strategies: {} bytes sent{}\n", predicted,
                     predicted == counted ? ", as counted" : fmt::format(", but counted {}", counted));
}

}  // namespace

std::string plan_text(const Blueprint& b, const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels) {
  int ranks = b.spread.batch_ranks();
  std::string text = fmt::format("plan: {} rank{}, {} microbatch{} of {} sample{}", ranks, ranks == 1 ? "" : "s",
                                 b.microbatches, b.microbatches == 1 ? "" : "es",
                                 (b.program.batch_size() + b.microbatches - 1) / b.microbatches,
                                 b.program.batch_size() == b.microbatches ? "" : "s");
  for (const Axis& axis : b.spread.axes) text += fmt::format(", axis {} {}", axis.name, axis.size);
  text += "\n";
  for (const std::string& remark : b.spread.remarks) text += "  " + remark + "\n";
  std::vector<int64_t> first = deal_leaves(b.microbatches, ranks);
  std::map<Kind, std::vector<int>> kinds;
  for (int r = 0; r < ranks; ++r) {
    int64_t lo = first[static_cast<size_t>(r)], hi = first[static_cast<size_t>(r) + 1];
    kinds[{hi - lo, orr_tree_nodes(lo, hi, b.microbatches)}].push_back(r);
  }
  for (auto& [kind, who] : kinds) {
    LowerRequest request{&b.program, &b.spread, b.microbatches, who.front(), kernels};
    RankPlan plan = lower(request);
    text += ranks_text(who) + "\n" + memory_text(plan) + collectives_text(plan, who);
    if (!plan.buckets.empty()) text += predicted_text(plan, b, stack, who.front());
    text += fmt::format("  compute {:.4g} GFLOP a step in {} launches\n", plan.flops() * 1e-9, plan.launches.size());
  }
  return text;
}

}  // namespace orrery
