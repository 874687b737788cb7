// SPDX-License-Identifier: Apache-2.0
//
// The text about a plan's traffic: bytes by rank, every collective with its bytes and cause, and
// the bytes that strategies predict.
#pragma once

#include <string>
#include <vector>

#include "edit/predict.h"

namespace orrery {

// `what` is what the plan carries out, such as "a step". REQUIRES: the plan is that of every rank
// in `ranks`.
std::string traffic_text(const RankPlan& plan, const std::vector<int>& ranks,
                         const std::vector<StrategyUse>& stack, const char* what = "a step");

const char* collective_name(int32_t op);

// "rank 3", "ranks 0-2, 5": runs of consecutive ranks, the first few of them.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace orrery
