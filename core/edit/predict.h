// SPDX-License-Identifier: Apache-2.0
//
// Compares the bytes that strategies predict with those that the plan counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "edit/edit.h"
#include "lower/rank_plan.h"

namespace orrery {

struct Prediction {
  std::string strategy;
  uint64_t predicted = 0, counted = 0;  // bytes that the rank sends in a step
};

// One for each strategy of the stack, in order, and one for the exchanges of the script itself.
std::vector<Prediction> predictions(const RankPlan& plan, const std::vector<StrategyUse>& stack,
                                    int rank);

// The bytes that the rank sends in a step, by all of them.
uint64_t predicted_bytes(const RankPlan& plan, const std::vector<StrategyUse>& stack, int rank);

// How often a step posts each of the plan's exchanges, by index; those that it never posts are
// missing.
std::map<int, int64_t> times_posted(const RankPlan& plan);

}  // namespace orrery
