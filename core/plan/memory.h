// SPDX-License-Identifier: Apache-2.0
//
// The text about a plan's memory: states, buckets, and the storages at the arena's peak.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

std::string memory_text(const RankPlan& plan);

// For a plan that takes more than `most` bytes: by how much, and what takes it, most first. "" for
// one that fits.
std::string excess_text(const RankPlan& plan, const std::vector<int>& who, double most);

}  // namespace orrery
