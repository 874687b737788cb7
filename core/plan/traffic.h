// SPDX-License-Identifier: Apache-2.0
//
// A plan's traffic: bytes by rank, every collective with its bytes and cause, copies between memory
// tiers, and the bytes that strategies predict.
#pragma once

#include <vector>

#include "edit/predict.h"
#include "plan/json.h"

namespace orrery {

// REQUIRES: the plan is that of every rank in `ranks`. [any thread]
Json traffic_json(const RankPlan& plan, const std::vector<int>& ranks,
                  const std::vector<StrategyUse>& stack);

const char* collective_name(int32_t op);
const char* tier_name(Tier tier);

}  // namespace orrery
