// SPDX-License-Identifier: Apache-2.0
//
// A planned step as the object that docs/plan.md describes, from which all texts are made.
#pragma once

#include "edit/blueprint.h"
#include "plan/json.h"
#include "plan/machine_model.h"
#include "plan/rank_kinds.h"

namespace orrery {

// The step as a whole, without its kinds of ranks. Both call strategies and scripts. [main thread]
Json layout_json(const PlanSource& source, const Blueprint& b, const Machine& machine,
                 double model_flops, ShardSizes sizes);
// All of it.
Json step_json(const PlanSource& source, const Blueprint& b, const Machine& machine);

}  // namespace orrery
