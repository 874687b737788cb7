// SPDX-License-Identifier: Apache-2.0
//
// A plan's memory: states, buckets, and the storages at the arena's peak.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "lower/rank_plan.h"
#include "plan/json.h"

namespace orrery {

// The bytes of a rank's memory by category; the arena's as "arena".
std::map<std::string, uint64_t> memory_parts(const RankPlan& plan);
// What the programs that run after every so many steps add to it, by category: states that the step
// does not have, buckets, and what their arena needs more than the step's, which they share.
std::map<std::string, uint64_t> parts_of_rounds(const Blueprint& b, const RankPlan& step,
                                                const std::vector<std::string>& kernels);
// The most that the arena holds at a time of a category.
uint64_t most_in_arena(const RankPlan& plan, const std::string& category);
// What the arena holds when it is fullest, by category.
std::map<std::string, uint64_t> peak_by_category(const RankPlan& plan);
// The bytes of a run's checkpoint, of all ranks together: parameters and states, each once, or once
// for each coordinate where it varies.
uint64_t checkpoint_bytes(const Blueprint& b);
// What lies beside the rank's memory, by tier: the bytes of the tier and of its categories.
Json away_json(const RankPlan& plan);

}  // namespace orrery
