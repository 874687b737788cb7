// SPDX-License-Identifier: Apache-2.0
#include "run/plan_text.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/text.h"
#include "lower/average.h"
#include "lower/kernel_choice.h"
#include "lower/lower.h"
#include "run/ledger.h"
#include "run/plan_fit.h"
#include "run/plan_memory.h"
#include "run/plan_time.h"
#include "run/plan_traffic.h"
#include "run/schedule_picture.h"

namespace orrery {
namespace {

// The schedule of the ranks that have most microbatches.
std::string pipeline_text(const Blueprint& b, const std::vector<int64_t>& first) {
  int64_t most = 0;
  for (size_t r = 0; r + 1 < first.size(); ++r) most = std::max(most, first[r + 1] - first[r]);
  const std::shared_ptr<const Timetable> timetable =
      b.spread.make_timetable(static_cast<int>(most));
  if (const std::string& path = runtime_options().plan_svg; !path.empty()) {
    std::ofstream file(path);
    file << schedule_svg(*timetable);
    if (!file.flush())
      fail(ORR_FAILED, "--svg {}: cannot be written; name a file in a directory that is there",
           path);
  }
  return schedule_text(*timetable);
}

std::string head_text(const Blueprint& b) {
  int ranks = b.spread.world;
  std::string text =
      fmt::format("plan: {} rank{}, {} microbatch{} of {} sample{}", ranks, ranks == 1 ? "" : "s",
                  b.microbatches, b.microbatches == 1 ? "" : "es",
                  (b.program.batch_size() + b.microbatches - 1) / b.microbatches,
                  b.program.batch_size() == b.microbatches ? "" : "s");
  for (const Axis& axis : b.spread.axes) text += fmt::format(", axis {} {}", axis.name, axis.size);
  return text + "\n";
}

// "kernels cpu 60: matmul, reduce; reference 1: topk": which plugin computes an op, by its score.
std::string kernels_text(const RankPlan& plan, const std::vector<std::string>& kernels) {
  const KernelChoice choice(kernels);
  std::map<std::pair<int, int>, std::set<std::string>> ops;  // of a plugin and score
  for (const Launch& l : plan.launches) ops[{l.kernels, -choice.best(l).score}].insert(l.op.kind);
  std::string text;
  for (const auto& [by, kinds] : ops)
    text += fmt::format("{}{} {}: {}", text.empty() ? "  kernels " : "; ",
                        kernels[static_cast<size_t>(by.first)], -by.second,
                        join({kinds.begin(), kinds.end()}, ", "));
  return text + "\n";
}

// What ranks do whose plans are alike.
std::string kind_text(const RankPlan& plan, const std::vector<int>& who,
                      const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels) {
  std::string text = ranks_text(who) + "\n" + memory_text(plan) + ledger_text(plan) +
                     traffic_text(plan, who, stack);
  text += fmt::format("  compute {:.4g} GFLOP a step in {} launches\n", plan.flops() * 1e-9,
                      std::count_if(plan.schedule.begin(), plan.schedule.end(),
                                    [](const Step& s) { return s.kind == Step::launch; }));
  return text + kernels_text(plan, kernels);
}

// What ranks that train alone send when they meet, which is no part of a step.
std::string average_text(const Spread& spread, const RankPlan& step, const std::vector<int>& who,
                         const std::vector<StrategyUse>& stack,
                         const std::vector<std::string>& kernels) {
  const int every = spread.averaging.every;
  if (every == 0) return "";
  const Program program = averaging_program(step.local.program, spread);
  const Spread meeting = averaging_spread(spread);
  const RankPlan plan = lower({&program, &meeting, 1, who.front(), kernels});
  const std::string what =
      every == 1 ? "more after each step" : fmt::format("more after every {} steps", every);
  return traffic_text(plan, who, stack, what.c_str());
}

// Plans every distinct rank.
std::string step_plan(const Blueprint& b, const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels) {
  const RankKinds kinds(b);
  const Machine machine = machine_of(runtime_options().plan_machine);
  struct Planned {
    std::string text;
    Timeline time;
  };
  const auto& groups = kinds.planned_together();
  auto by_group = in_parallel<std::vector<Planned>>(groups.size(), [&](size_t g) {
    RankPlan plan = lower(kinds.request(groups[g].front(), kernels));
    std::vector<Planned> found;
    for (size_t kind : groups[g]) {
      const std::vector<int>& who = kinds.alike()[kind];
      turn_into(plan, who.front());
      found.push_back(
          {kind_text(plan, who, stack, kernels) + average_text(b.spread, plan, who, stack, kernels),
           timeline_of(plan, kinds, machine)});
    }
    return found;
  });
  std::vector<std::string> texts(kinds.alike().size());
  std::vector<Timeline> timelines(kinds.alike().size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].size(); ++i) {
      Planned& p = by_group[g][i];
      texts[groups[g][i]] = std::move(p.text), timelines[groups[g][i]] = std::move(p.time);
    }
  const std::vector<Spent> spent = simulate(timelines);
  std::string text = head_text(b);
  if (!b.spread.pipe_axis.empty()) text += pipeline_text(b, kinds.first_leaves());
  for (const std::string& remark : b.spread.remarks) text += "  " + remark + "\n";
  text += step_text(b.program, spent, machine);
  for (size_t i = 0; i < texts.size(); ++i) text += texts[i] + spent_text(spent[i]);
  return text;
}

}  // namespace

std::string plan_text(const PlanSource& source) {
  const RuntimeOptions& options = runtime_options();
  if (options.plan_diff) return plan_diff(source, options.plan_rank);
  Blueprint b = source.draw(source.stack, source.world);
  std::string text;
  if (options.plan_fit) text = fit_microbatches(b, source.kernels, options.plan_fit);
  return text + step_plan(b, source.stack, source.kernels);
}

}  // namespace orrery
