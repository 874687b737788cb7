// SPDX-License-Identifier: Apache-2.0
//
// The memory of a plan in words: states, buckets, and what fills the arena when it is fullest.
#pragma once

#include <string>

#include "lower/rank_plan.h"

namespace orrery {

std::string memory_text(const RankPlan& plan);

}  // namespace orrery
