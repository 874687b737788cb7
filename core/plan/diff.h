// SPDX-License-Identifier: Apache-2.0
//
// What each strategy of a stack changes in one rank's plan, as a diff of its ops. The stack is
// built up entry by entry, each time with only the mesh axes that its entries make. The number of
// microbatches is always that of the whole stack.
#pragma once

#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "lower/rank_plan.h"
#include "plan/json.h"

namespace orrery {

// For each strategy: how many ops it adds and removes, how many only change their sizes, bytes sent
// and memory before and after, and the lines of all ops, each after ' ', '-' or '+'.
// REQUIRES: 0 <= rank < source.world.
Json diff_json(const PlanSource& source, int rank);

// The ops of a plan, each once, in the order in which a step first runs them. `key` has no sizes:
// lines with equal keys are the same op, perhaps on shares of other sizes.
struct OpLine {
  std::string key, text;
};
std::vector<OpLine> op_lines(const RankPlan& plan);

// How to make the second list of the first, by keys.
struct Change {
  char sign;  // ' ', '-', '+'
  std::string text;
};
struct OpDiff {
  std::vector<Change> changes;
  size_t added = 0, removed = 0, resized = 0;  // resized: only sizes differ
};
OpDiff diff_ops(const std::vector<OpLine>& before, const std::vector<OpLine>& after);

}  // namespace orrery
