// SPDX-License-Identifier: Apache-2.0
#include "plan/text.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/text.h"
#include "lower/kernel_choice.h"
#include "lower/lower.h"
#include "plan/diff.h"
#include "plan/figures.h"
#include "plan/fit.h"
#include "plan/json.h"
#include "plan/ledger.h"
#include "plan/memory.h"
#include "plan/ops.h"
#include "plan/schedule_picture.h"
#include "plan/time.h"
#include "plan/traffic.h"

namespace orrery {
namespace {

// The schedule of the pipeline whose ranks have the most microbatches.
std::string pipeline_text(const Blueprint& b, const std::vector<int64_t>& first) {
  int64_t most = 0;
  for (size_t r = 0; r + 1 < first.size(); ++r) most = std::max(most, first[r + 1] - first[r]);
  const std::shared_ptr<const Timetable> timetable = b.mesh.make_timetable(static_cast<int>(most));
  if (const std::string& path = plan_options().svg; !path.empty()) {
    std::ofstream file(path);
    file << schedule_svg(*timetable);
    if (!file.flush())
      fail(ORR_FAILED, "--svg {}: cannot be written; name a file in a directory that is there",
           path);
  }
  return schedule_text(*timetable);
}

std::string head_text(const Blueprint& b) {
  int ranks = b.mesh.world;
  std::string text =
      fmt::format("plan: {} rank{}, {} microbatch{} of {} sample{}", ranks, ranks == 1 ? "" : "s",
                  b.microbatches, b.microbatches == 1 ? "" : "es",
                  (b.program.batch_size() + b.microbatches - 1) / b.microbatches,
                  b.program.batch_size() == b.microbatches ? "" : "s");
  for (const Axis& axis : b.mesh.axes) text += fmt::format(", axis {} {}", axis.name, axis.size);
  return text + "\n";
}

// What a step does, by kind of op and the plugin that computes it (with its score): launches,
// GFLOP, GB read and written.
std::string ops_text(const RankPlan& plan, const std::vector<std::string>& kernels) {
  std::vector<int64_t> times(plan.launches.size());
  for (const Step& s : plan.schedule)
    if (s.kind == Step::launch) ++times[static_cast<size_t>(s.index)];
  struct Sum {
    int64_t launches = 0;
    double flops = 0, bytes = 0;
  };
  std::map<std::tuple<std::string, int, int>, Sum> ops;  // by kind, plugin and score
  const KernelChoice choice(kernels);
  Sum whole;
  for (size_t i = 0; i < times.size(); ++i) {
    const Launch& l = plan.launches[i];
    const auto n = static_cast<double>(times[i]);
    for (Sum* sum : {&whole, &ops[{l.op.kind, l.kernels, choice.best(l).score}]})
      sum->launches += times[i], sum->flops += n * l.cost.flops, sum->bytes += n * l.cost.bytes;
  }
  std::string text = "  launches        GFLOP         GB  a step\n";
  const auto add = [&](const Sum& sum, const std::string& name) {
    text += fmt::format("  {:8} {:12.4g} {:10.4g}  {}\n", sum.launches, sum.flops * 1e-9,
                        sum.bytes * 1e-9, name);
  };
  add(whole, "in all");
  for (const auto& [by, sum] : ops) {
    const auto& [kind, plugin, score] = by;
    add(sum, fmt::format("{:<22} {} ({})", kind, kernels[static_cast<size_t>(plugin)], score));
  }
  return text;
}

// The text about ranks whose plans are alike.
std::string kind_text(const RankPlan& plan, const std::vector<int>& who,
                      const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels) {
  return ranks_text(who) + "\n" + memory_text(plan) + ledger_text(plan) +
         traffic_text(plan, who, stack) + ops_text(plan, kernels);
}

// The text about periodic programs, which are not part of a step.
std::string periodic_text(const Blueprint& b, const std::vector<int>& who,
                          const std::vector<StrategyUse>& stack,
                          const std::vector<std::string>& kernels) {
  std::string text;
  for (const Periodic& one : b.mesh.periodic)
    for (size_t round = 0; round < one.rounds.size(); ++round) {
      const Mesh mesh = mesh_of_periodic(b.mesh);
      const RankPlan plan =
          lower({one.rounds[round].get(), &mesh, b.microbatches, who.front(), kernels});
      std::string what = one.every == 1 ? "more after each step"
                                        : fmt::format("more after every {} steps", one.every);
      if (one.rounds.size() > 1)
        what += fmt::format(", round {} of {}", round + 1, one.rounds.size());
      text += fmt::format("  program of strategy.{}, memory {}\n", one.origin,
                          human_bytes(static_cast<double>(plan.arena_bytes + plan.comm_bytes)));
      text += traffic_text(plan, who, stack, what.c_str());
    }
  return text;
}

// Where an axis is not the innermost and crosses hosts, though one host has room for its ranks, and
// compute waits for it: what the step would take with the axis innermost.
std::string order_text(const Blueprint& b, const PlannedStep& step, const Figures& figures,
                       const std::vector<std::string>& kernels, const Machine& machine) {
  for (const TimePart& part : figures.parts) {
    const int size = b.mesh.size_of(part.axis);
    auto at = std::find_if(b.mesh.axes.begin(), b.mesh.axes.end(),
                           [&](const Axis& axis) { return axis.name == part.axis; });
    if (part.what != "exposed" || part.share < 0.05 || at == b.mesh.axes.end()) continue;
    if (at + 1 == b.mesh.axes.end() || machine.ranks_per_host % size != 0) continue;
    if (!machine.spans_hosts(b.mesh, part.axis, 0)) continue;
    Blueprint moved = b;
    auto& axes = moved.mesh.axes;
    const auto from = axes.begin() + (at - b.mesh.axes.begin());
    std::rotate(from, from + 1, axes.end());
    const double seconds = plan_step(moved, kernels, machine).seconds;
    if (seconds < step.seconds)
      return fmt::format(
          "  order   axis '{}' crosses hosts: with strategy.{} last in the stack (and the size of "
          "the others given), the step takes {:.4g} s, not {:.4g} s\n",
          part.axis, at->strategy, seconds, step.seconds);
  }
  return "";
}

// For ranks that take more than `most` bytes: by how much, and what takes it, most first. "" for
// those that fit.
std::string excess_text(const PlannedRanks& kind, double most) {
  const auto taken = static_cast<double>(kind.bytes);
  if (taken <= most) return "";
  std::map<std::string, uint64_t> sums = kind.arena;
  for (auto& [name, bytes] : kind.parts)
    if (name != "arena") sums[name] += bytes;
  std::vector<std::pair<uint64_t, std::string>> parts;
  for (auto& [name, bytes] : sums)
    if (bytes) parts.emplace_back(bytes, name);
  std::sort(parts.rbegin(), parts.rend());
  std::string text =
      fmt::format("does not fit: {} of {} on {}, {} too much:", human_bytes(taken),
                  human_bytes(most), ranks_text(kind.ranks), human_bytes(taken - most));
  for (auto& [bytes, name] : parts)
    text += fmt::format(" {} {},", name, human_bytes(static_cast<double>(bytes)));
  text.back() = '\n';
  return text;
}

// What of a step does not fit into `most` bytes a rank, and what --fit finds for them, or why
// nothing fits.
std::string excess_text(const PlannedStep& step, Blueprint b,
                        const std::vector<std::string>& kernels, double most) {
  std::string text;
  for (const PlannedRanks& kind : step.kinds) text += excess_text(kind, most);
  if (text.empty()) return "";
  try {
    return text + fit_microbatches(b, kernels, static_cast<uint64_t>(most));
  } catch (const Error& e) {
    return text + e.what() + "\n";
  }
}

// The whole plan, as text or in JSON.
std::string step_plan(const PlanSource& source, const Blueprint& b) {
  const Machine machine = machine_of(plan_options().machine);
  const double model_flops = product_flops(source.build({}, 1, 0).program);
  if (plan_options().json) {
    const PlannedStep step = plan_step(b, source.kernels, machine);
    return plan_json(b, step, figures_of(step, b, machine, model_flops), machine);
  }
  const PlannedStep step =
      plan_step(b, source.kernels, machine, [&](const RankPlan& plan, const std::vector<int>& who) {
        return kind_text(plan, who, source.stack, source.kernels) +
               periodic_text(b, who, source.stack, source.kernels);
      });
  const Figures figures = figures_of(step, b, machine, model_flops);
  std::string text;
  if (machine.memory_bytes) text = excess_text(step, b, source.kernels, machine.memory_bytes);
  text += head_text(b);
  if (!b.mesh.pipe_axis.empty())
    text += pipeline_text(b, deal_microbatches(b.microbatches, b.mesh));
  for (const std::string& remark : b.mesh.remarks) text += "  " + remark + "\n";
  text += step_text(b.program, step.seconds, machine) + figures_text(figures, step.seconds) +
          order_text(b, step, figures, source.kernels, machine);
  for (const PlannedRanks& kind : step.kinds) text += kind.text + spent_text(kind, b.mesh);
  return text;
}

std::string write_ops(const Blueprint& b, const std::vector<std::string>& kernels,
                      const std::string& path) {
  const RankPlan plan = lower({&b.program, &b.mesh, b.microbatches, 0, kernels});
  std::ofstream file(path);
  file << ops_json(plan);
  if (!file.flush()) fail(ORR_FAILED, "--ops {}: cannot be written", path);
  return "";
}

}  // namespace

PlanOptions& plan_options() {
  static PlanOptions options;
  return options;
}

std::string plan_text(const PlanSource& source) {
  const PlanOptions& options = plan_options();
  if (options.diff) return plan_diff(source, options.rank);
  Blueprint b = source.build(source.stack, source.world, 0);
  if (!options.ops.empty()) return write_ops(b, source.kernels, options.ops);
  std::string text;
  if (options.fit) text = fit_microbatches(b, source.kernels, options.fit);
  if (options.json) text.clear();
  return text + step_plan(source, b);
}

}  // namespace orrery
