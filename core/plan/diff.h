// SPDX-License-Identifier: Apache-2.0
//
// Shows what each strategy of a stack changes in one rank's plan, as a unified diff of its ops. The
// stack is built up entry by entry, each time with only the mesh axes that its entries make. The
// number of microbatches is always that of the whole stack.
#pragma once

#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "lower/rank_plan.h"

namespace orrery {

// REQUIRES: 0 <= rank < source.world.
std::string plan_diff(const PlanSource& source, int rank);

// The ops of a plan, each once, in the order in which a step first runs them. `key` has no sizes:
// lines with equal keys are the same op, perhaps on shares of other sizes.
struct OpLine {
  std::string key, text;
};
std::vector<OpLine> op_lines(const RankPlan& plan);

// The hunks of a unified diff by keys, with long runs of lines shortened; "" if no op was added or
// removed.
struct OpDiff {
  std::string text;
  size_t added = 0, removed = 0, resized = 0;  // resized: only sizes differ
};
OpDiff diff_ops(const std::vector<OpLine>& before, const std::vector<OpLine>& after);

}  // namespace orrery
