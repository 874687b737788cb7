// SPDX-License-Identifier: Apache-2.0
#include "plan/probe.h"

#include <algorithm>
#include <map>
#include <vector>

#include "lower/lower.h"
#include "lower/wholes.h"
#include "plan/memory.h"

namespace orrery {
namespace {

bool is_launch(const RankPlan& plan, const Step& step, Phase phase) {
  return step.kind == Step::launch &&
         plan.launches[static_cast<size_t>(step.index)].op.phase == phase;
}

struct Activations {
  int64_t kept = 0;     // for backward, when it begins
  int64_t working = 0;  // the most beside them
};

bool comes_and_goes(const Storage& s) {
  return s.category == "activation" || s.category == kGatheredWeights ||
         (s.category == kFullGradients && s.region == Region::arena);
}

Activations activations(const RankPlan& plan) {
  std::vector<int64_t> change(plan.schedule.size() + 2);
  for (const Storage& s : plan.storages)
    for (auto& [first, last] : s.alive) {
      if (!comes_and_goes(s)) continue;
      change[static_cast<size_t>(first)] += static_cast<int64_t>(s.whole());
      change[static_cast<size_t>(last) + 1] -= static_cast<int64_t>(s.whole());
    }
  const auto begins = std::find_if(plan.schedule.begin(), plan.schedule.end(), [&](const Step& s) {
    return is_launch(plan, s, Phase::backward);
  });
  Activations found;
  int64_t alive = 0, peak = 0;
  for (size_t step = 0; step < change.size(); ++step) {
    peak = std::max(peak, alive += change[step]);
    if (step == static_cast<size_t>(begins - plan.schedule.begin())) found.kept = alive;
  }
  found.working = peak - found.kept;
  return found;
}

}  // namespace

Json probe_json(const Blueprint& b, const std::vector<std::string>& kernels,
                const Machine& machine) {
  const RankPlan plan = lower({&b.program, &b.mesh, b.microbatches, 0, kernels});
  double compute = 0, update = 0;
  std::map<std::string, double> exchanged;
  for (const Step& step : plan.schedule) {
    const auto at = static_cast<size_t>(step.index);
    if (step.kind == Step::launch)
      (is_launch(plan, step, Phase::update) ? update : compute) +=
          machine.seconds(plan.launches[at]);
    if (step.kind != Step::post) continue;
    const Exchange& e = plan.exchanges[at];
    if (!e.is_copy() && !e.axis.empty())
      exchanged[e.axis] += machine.trip(e, plan.mesh, plan.rank).seconds;
  }
  const Activations kept = activations(plan);
  return {{"compute_seconds", compute},     {"update_seconds", update},
          {"exchanged_seconds", exchanged}, {"kept_bytes", kept.kept},
          {"working_bytes", kept.working},  {"memory", memory_parts(plan)},
          {"outside_bytes", plan.outside}};
}

}  // namespace orrery
