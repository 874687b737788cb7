// SPDX-License-Identifier: Apache-2.0
//
// What each strategy of a stack makes of the program of one rank: a unified diff of its ops. The
// stack is drawn entry by entry over the mesh axes that those entries make; microbatches are those
// of the whole stack.
#pragma once

#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "lower/rank_plan.h"

namespace orrery {

// REQUIRES: 0 <= rank < source.world.
std::string plan_diff(const PlanSource& source, int rank);

// The ops of a plan, each once, in the order in which a step comes to them. `key` leaves out what
// changes with the size of shares: lines of equal keys are the same op.
struct OpLine {
  std::string key, text;
};
std::vector<OpLine> op_lines(const RankPlan& plan);

// The hunks of a unified diff by keys, long runs of one kind shortened; "" if nothing came or went.
struct OpDiff {
  std::string text;
  size_t added = 0, removed = 0, resized = 0;  // resized: only sizes differ
};
OpDiff diff_ops(const std::vector<OpLine>& before, const std::vector<OpLine>& after);

}  // namespace orrery
