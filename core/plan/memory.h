// SPDX-License-Identifier: Apache-2.0
//
// The text about a plan's memory: states, buckets, and the storages at the arena's peak.
#pragma once

#include <string>

#include "lower/rank_plan.h"

namespace orrery {

std::string memory_text(const RankPlan& plan);

}  // namespace orrery
