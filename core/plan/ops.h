// SPDX-License-Identifier: Apache-2.0
//
// The ops of a rank's plan.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "plan/json.h"

namespace orrery {

// As kernels get them, for `orrery check --script`, which tests a kernel plugin on the shapes of a
// script: a JSON array, with equal ops only once: {"kind", "where", "flops", "in": [{"dtype",
// "dims", "strides"}], "out", "attrs": {name: number or text}, "instrs": [[fn, dtype, a, b, c,
// imm]], "stored"}. Attributes that are lists are left out: they belong to ops without kernels.
std::string ops_json(const RankPlan& plan);

// What a step launches, by kind of op and the plugin that computes it with its score: launches,
// FLOPs, bytes read and written. [any thread]
Json launches_json(const RankPlan& plan, const std::vector<std::string>& kernels);

}  // namespace orrery
