// SPDX-License-Identifier: Apache-2.0
//
// Writes the ops of a rank's plan as kernels get them, for `orrery check --script`, which tests a
// kernel plugin on the shapes of a script.
#pragma once

#include <string>

#include "lower/rank_plan.h"

namespace orrery {

// A JSON array, with equal ops only once: {"kind", "where", "flops", "in": [{"dtype", "dims",
// "strides"}], "out", "attrs": {name: number or text}, "instrs": [[fn, dtype, a, b, c, imm]],
// "stored"}. Attributes that are lists are left out: they belong to ops without kernels.
std::string ops_json(const RankPlan& plan);

}  // namespace orrery
