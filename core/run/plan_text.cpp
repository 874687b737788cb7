// SPDX-License-Identifier: Apache-2.0
#include "run/plan_text.h"

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/in_parallel.h"
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

// What ranks do whose plans are alike.
std::string kind_text(const RankPlan& plan, const std::vector<int>& who,
                      const std::vector<StrategyUse>& stack) {
  std::string text = ranks_text(who) + "\n" + memory_text(plan) + ledger_text(plan) +
                     traffic_text(plan, who, stack);
  return text + fmt::format("  compute {:.4g} GFLOP a step in {} launches\n", plan.flops() * 1e-9,
                            std::count_if(plan.schedule.begin(), plan.schedule.end(),
                                          [](const Step& s) { return s.kind == Step::launch; }));
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
      found.push_back({kind_text(plan, who, stack), timeline_of(plan, kinds, machine)});
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
