// SPDX-License-Identifier: Apache-2.0
#include "plan/diff.h"

#include <algorithm>

#include "lower/lower.h"

namespace orrery {
namespace {

// The number of ranks on those axes of the whole stack that these strategies make.
int ranks_of(const Mesh& whole, const std::vector<StrategyUse>& stack) {
  int ranks = 1;
  for (const Axis& axis : whole.axes)
    if (std::any_of(stack.begin(), stack.end(),
                    [&](const StrategyUse& use) { return use.name == axis.strategy; }))
      ranks *= axis.size;
  return ranks;
}

Json lines_json(const std::vector<Change>& changes) {
  Json lines = Json::array();
  for (const Change& change : changes) lines.push_back(change.sign + change.text);
  return lines;
}

}  // namespace

Json diff_json(const PlanSource& source, int rank) {
  const Blueprint whole = source.build(source.stack, source.world, 0);
  auto plan_of = [&](const std::vector<StrategyUse>& stack) {
    const int ranks = ranks_of(whole.mesh, stack);
    Blueprint b = source.build(stack, ranks, 0);
    return lower(
        {&b.program, &b.mesh, whole.microbatches, rank / (source.world / ranks), source.kernels});
  };
  std::vector<StrategyUse> stack;
  RankPlan before = plan_of(stack);
  Json entries = Json::array();
  for (const StrategyUse& use : source.stack) {
    stack.push_back(use);
    RankPlan after = plan_of(stack);
    const OpDiff diff = diff_ops(op_lines(before), op_lines(after));
    entries.push_back({{"strategy", use.name},
                       {"ranks", ranks_of(whole.mesh, stack)},
                       {"added", diff.added},
                       {"removed", diff.removed},
                       {"resized", diff.resized},
                       {"sent_bytes", {before.bytes_sent(), after.bytes_sent()}},
                       {"memory_bytes", {before.bytes(), after.bytes()}},
                       {"lines", lines_json(diff.changes)}});
    before = std::move(after);
  }
  return {{"rank", rank}, {"ranks", source.world}, {"entries", std::move(entries)}};
}

}  // namespace orrery
