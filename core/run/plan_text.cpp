// SPDX-License-Identifier: Apache-2.0
#include "run/plan_text.h"

#include <orrery/sdk/traffic.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "lower/lower.h"
#include "lower/tensor.h"
#include "run/ledger.h"
#include "run/predict.h"
#include "run/schedule_picture.h"

namespace orrery {
namespace {

using Kind = std::vector<int64_t>;

// Ranks of equal kind run programs of equal shapes and messages: one plan serves them all. Their
// coordinates agree on all axes but that of the batch, where their leaves complete the same tree nodes
// (unless it also deals pieces of parameters), and that of tensor parallelism, where most shares differ only in which part they are of.
class Kinds {
 public:
  explicit Kinds(const Blueprint& b) : b_(b), first_(deal_leaves(b.microbatches, b.spread.batch_ranks())) {
    const std::string& axis = b.spread.tensor.axis;
    std::map<std::string, int> known;
    for (int t = 0; !axis.empty() && t < b.spread.size_of(axis); ++t) {
      cuts_.push_back(cut_program(b.program, b.spread, b.spread.peer(axis, t, 0)).program);
      alike_.push_back(known.emplace(shapes(cuts_.back()), t).first->second);
    }
  }

  Kind of(int rank) const {
    Kind kind;
    for (const Axis& axis : b_.spread.axes) {
      int at = b_.spread.coordinate(axis.name, rank);
      if (axis.name == b_.spread.tensor.axis) at = alike_[static_cast<size_t>(at)];
      if (axis.name != b_.spread.batch_axis || !b_.spread.sharded.empty()) kind.push_back(at);
    }
    size_t me = static_cast<size_t>(b_.spread.coordinate(b_.spread.batch_axis, rank));
    kind.push_back(first_[me + 1] - first_[me]);
    kind.push_back(orr_tree_nodes(first_[me], first_[me + 1], b_.microbatches));
    return kind;
  }

  const Program* cut_for(int rank) const {
    const std::string& axis = b_.spread.tensor.axis;
    return axis.empty() ? nullptr : &cuts_[static_cast<size_t>(b_.spread.coordinate(axis, rank))];
  }
  const std::vector<int64_t>& first_leaves() const { return first_; }

 private:
  static std::string shapes(const Program& p) {
    std::string text;
    for (const Op& op : p.ops()) {
      text += op.kind + to_string(attr_ints(op.attrs, "counts"));
      for (ValueId v : op.in) text += to_string(p.type(v));
      for (ValueId v : op.out) text += to_string(p.type(v));
    }
    return text;
  }

  const Blueprint& b_;
  std::vector<int64_t> first_;
  std::vector<Program> cuts_;  // by coordinate on the tensor axis
  std::vector<int> alike_;     // the first coordinate of equal shapes
};

std::map<std::string, uint64_t> peak_by_category(const RankPlan& plan) {
  std::map<int, int64_t> change;  // by step: bytes that come to life less those that ended before it
  for (const Storage& s : plan.storages)
    for (auto& [first, last] : s.region == Region::arena ? s.alive : decltype(s.alive){}) {
      change[first] += static_cast<int64_t>(s.whole());
      change[last + 1] -= static_cast<int64_t>(s.whole());
    }
  int peak_step = 0;
  int64_t alive = 0, peak = 0;
  for (auto& [step, bytes] : change)
    if ((alive += bytes) > peak) peak = alive, peak_step = step;
  std::map<std::string, uint64_t> parts;
  for (const Storage& s : plan.storages)
    if (s.region == Region::arena && s.bytes && s.alive_at(peak_step)) parts[s.category] += s.whole();
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

// Bytes that a rank sends in a step; those of one plan may differ by a cache line in a bucket's share.
uint64_t sent_by(const RankPlan& plan, int rank) {
  uint64_t sum = 0;
  for (const Step& s : plan.schedule) {
    if (s.kind != Step::post) continue;
    const Exchange& e = plan.exchanges[static_cast<size_t>(s.index)];
    sum += orr::traffic::bytes_sent(e.descriptor(), plan.spread.coordinate(e.axis, rank), plan.spread.size_of(e.axis));
  }
  return sum;
}

std::string sends_text(const RankPlan& plan, const std::vector<int>& ranks) {
  std::map<uint64_t, std::vector<int>> by_bytes;
  for (int rank : ranks) by_bytes[sent_by(plan, rank)].push_back(rank);
  int64_t posts = 0;
  for (auto& [index, n] : times_posted(plan)) posts += n;
  std::string text;
  for (auto& [bytes, who] : by_bytes)
    text += fmt::format("  sends   {:>14} bytes a step in {} operation{}{}\n", bytes, posts, posts == 1 ? "" : "s",
                        by_bytes.size() == 1 ? "" : ", " + ranks_text(who));
  return text;
}

const char* op_name(int32_t op) {
  switch (op) {
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

std::string collectives_text(const RankPlan& plan, const std::vector<int>& ranks) {
  std::map<int, int64_t> times = times_posted(plan);
  if (times.empty()) return "  sends nothing\n";
  std::string text = sends_text(plan, ranks);
  for (auto& [index, n] : times) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    text += fmt::format("    {:<12} {}{}  {} x {}", e.name, n == 1 ? "" : fmt::format("{} x ", n), op_name(e.op),
                        e.count, dtype_name(e.dtype));
    if (e.is_bucket())
      text += fmt::format("  {} tensors  {} node{}", e.totals.size(), e.nodes, e.nodes == 1 ? "" : "s");
    text += fmt::format("  sends {} bytes  by {} {}\n", e.bytes_sent * static_cast<uint64_t>(n), e.cause,
                        e.where.empty() ? "" : "(" + e.where + ")");
  }
  return text;
}

std::string predicted_text(const RankPlan& plan, const std::vector<StrategyUse>& stack, int rank) {
  std::string text;
  for (const Prediction& p : predictions(plan, stack, rank))
    if (p.counted + p.predicted > 0)
      text += fmt::format("  predicted by {}: {} bytes sent{}\n", p.strategy, p.predicted,
                          p.predicted == p.counted ? ", as counted" : fmt::format(", but counted {}", p.counted));
  return text;
}

// The schedule of the ranks that have most microbatches.
std::string pipeline_text(const Blueprint& b, const std::vector<int64_t>& first) {
  int64_t most = 0;
  for (size_t r = 0; r + 1 < first.size(); ++r) {
    most = std::max(most, first[r + 1] - first[r]);
    b.spread.make_tables(static_cast<int>(first[r + 1] - first[r]));  // plans are made by other threads
  }
  auto tables = b.spread.make_tables(static_cast<int>(most));
  if (const std::string& path = runtime_options().plan_svg; !path.empty()) {
    std::ofstream file(path);
    file << schedule_svg(tables);
    if (!file.flush()) fail(ORR_FAILED, "--svg {}: cannot be written; name a file in a directory that is there", path);
  }
  return schedule_text(tables);
}

// What ranks do whose plans are alike.
std::string kind_text(const Blueprint& b, const Kinds& kinds, const std::vector<int>& who,
                      const std::vector<StrategyUse>& stack, const std::vector<std::string>& kernels) {
  LowerRequest request{&b.program, &b.spread, b.microbatches, who.front(), kernels, kinds.cut_for(who.front())};
  RankPlan plan = lower(request);
  std::string text = ranks_text(who) + "\n" + memory_text(plan) + ledger_text(plan) + collectives_text(plan, who);
  if (plan.bytes_sent()) text += predicted_text(plan, stack, who.front());
  return text + fmt::format("  compute {:.4g} GFLOP a step in {} launches\n", plan.flops() * 1e-9,
                            std::count_if(plan.schedule.begin(), plan.schedule.end(),
                                          [](const Step& s) { return s.kind == Step::launch; }));
}

// make(0), make(1), ... on all CPUs; throws the first's error.
template <class Make>
std::vector<std::string> in_parallel(size_t n, const Make& make) {
  std::vector<std::string> made(n);
  std::vector<std::exception_ptr> errors(n);
  auto one = [&](size_t i) {
    try {
      made[i] = make(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  for (size_t t = 0; t < std::min<size_t>(n, std::max(1u, std::thread::hardware_concurrency())); ++t)
    workers.emplace_back([&] {
      for (size_t i; (i = next++) < n;) one(i);
    });
  workers.clear();
  for (std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  return made;
}

}  // namespace

std::string plan_text(const Blueprint& b, const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels) {
  int ranks = b.spread.world;
  Kinds kinds_of(b);
  std::string text = fmt::format("plan: {} rank{}, {} microbatch{} of {} sample{}", ranks, ranks == 1 ? "" : "s",
                                 b.microbatches, b.microbatches == 1 ? "" : "es",
                                 (b.program.batch_size() + b.microbatches - 1) / b.microbatches,
                                 b.program.batch_size() == b.microbatches ? "" : "s");
  for (const Axis& axis : b.spread.axes) text += fmt::format(", axis {} {}", axis.name, axis.size);
  text += "\n";
  if (!b.spread.pipe_axis.empty()) text += pipeline_text(b, kinds_of.first_leaves());
  for (const std::string& remark : b.spread.remarks) text += "  " + remark + "\n";
  std::map<Kind, std::vector<int>> kinds;
  for (int r = 0; r < ranks; ++r) kinds[kinds_of.of(r)].push_back(r);
  std::vector<std::vector<int>> alike;
  for (auto& [kind, who] : kinds) alike.push_back(std::move(who));
  for (const std::string& part : in_parallel(alike.size(), [&](size_t i) { return kind_text(b, kinds_of, alike[i], stack, kernels); }))
    text += part;
  return text;
}

}  // namespace orrery
