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
#include "plan/fit.h"
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

// What --fit finds for this many bytes a rank, or why nothing fits.
std::string what_fits(Blueprint b, const std::vector<std::string>& kernels, double bytes) {
  try {
    return fit_microbatches(b, kernels, static_cast<uint64_t>(bytes));
  } catch (const Error& e) {
    return std::string(e.what()) + "\n";
  }
}

// Plans one rank of each kind.
std::string step_plan(const Blueprint& b, const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels) {
  const RankKinds kinds(b);
  const Machine machine = machine_of(plan_options().machine);
  struct Planned {
    std::string text, excess;
    Timeline time;
  };
  const auto& groups = kinds.planned_together();
  auto by_group = in_parallel<std::vector<Planned>>(groups.size(), [&](size_t g) {
    RankPlan plan = lower(kinds.request(groups[g].front(), kernels));
    std::vector<Planned> found;
    for (size_t kind : groups[g]) {
      const std::vector<int>& who = kinds.alike()[kind];
      turn_into(plan, who.front());
      found.push_back({kind_text(plan, who, stack, kernels) + periodic_text(b, who, stack, kernels),
                       machine.memory_bytes ? excess_text(plan, who, machine.memory_bytes) : "",
                       timeline_of(plan, kinds, machine)});
    }
    return found;
  });
  std::vector<std::string> texts(kinds.alike().size());
  std::string excess;
  std::vector<Timeline> timelines(kinds.alike().size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].size(); ++i) {
      Planned& p = by_group[g][i];
      excess += p.excess;
      texts[groups[g][i]] = std::move(p.text), timelines[groups[g][i]] = std::move(p.time);
    }
  const std::vector<Spent> spent = simulate(timelines);
  std::string text = excess;
  if (!excess.empty()) text += what_fits(b, kernels, machine.memory_bytes);
  text += head_text(b);
  if (!b.mesh.pipe_axis.empty()) text += pipeline_text(b, kinds.first_microbatches());
  for (const std::string& remark : b.mesh.remarks) text += "  " + remark + "\n";
  text += step_text(b.program, spent, machine);
  for (size_t i = 0; i < texts.size(); ++i) text += texts[i] + spent_text(spent[i]);
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
  Blueprint b = source.build(source.stack, source.world);
  if (!options.ops.empty()) return write_ops(b, source.kernels, options.ops);
  std::string text;
  if (options.fit) text = fit_microbatches(b, source.kernels, options.fit);
  return text + step_plan(b, source.stack, source.kernels);
}

}  // namespace orrery
