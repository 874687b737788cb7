// SPDX-License-Identifier: Apache-2.0
#include "plan/diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
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

std::string bytes_text(uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string summary(const std::string& name, int ranks, const RankPlan& before,
                    const RankPlan& after, const OpDiff& diff) {
  return fmt::format(
      "strategy.{} on {} rank{}: {} op{} added, {} removed, {} of other sizes; sends {} a step "
      "(before: {}); "
      "memory {} (before: {})\n",
      name, ranks, ranks == 1 ? "" : "s", diff.added, diff.added == 1 ? "" : "s", diff.removed,
      diff.resized, bytes_text(after.bytes_sent()), bytes_text(before.bytes_sent()),
      bytes_text(after.bytes()), bytes_text(before.bytes()));
}

}  // namespace

std::string plan_diff(const PlanSource& source, int rank) {
  const Blueprint whole = source.build(source.stack, source.world, 0);
  auto plan_of = [&](const std::vector<StrategyUse>& stack) {
    const int ranks = ranks_of(whole.mesh, stack);
    Blueprint b = source.build(stack, ranks, 0);
    return lower(
        {&b.program, &b.mesh, whole.microbatches, rank / (source.world / ranks), source.kernels});
  };
  std::vector<StrategyUse> stack;
  RankPlan before = plan_of(stack);
  std::string text = fmt::format("diff: rank {} of {}, one process first\n", rank, source.world);
  for (const StrategyUse& use : source.stack) {
    stack.push_back(use);
    RankPlan after = plan_of(stack);
    const OpDiff diff = diff_ops(op_lines(before), op_lines(after));
    text += summary(use.name, ranks_of(whole.mesh, stack), before, after, diff) + diff.text;
    before = std::move(after);
  }
  return text;
}

}  // namespace orrery
