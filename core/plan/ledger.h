// SPDX-License-Identifier: Apache-2.0
//
// Counts bytes for each parameter by role, from the storages of a plan.
#pragma once

#include "lower/rank_plan.h"
#include "plan/json.h"

namespace orrery {

// How many elements of parameters the rank holds, and the memory that training needs for them by
// role, without zeros: the parameters, copies that ops compute with, weights that are gathered of
// pieces, gradients that leave in pieces and those that stay (with all tree nodes that wait for
// others), optimizer state.
Json ledger_json(const RankPlan& plan);

}  // namespace orrery
