// SPDX-License-Identifier: Apache-2.0
//
// What a search over layouts knows of a model and a machine before it plans.
#pragma once

#include "edit/blueprint.h"
#include "plan/json.h"
#include "plan/machine_model.h"

namespace orrery {

// Of the step that one process takes, without strategies. Calls scripts. [main thread]
Json facts_json(const PlanSource& source, const Machine& machine);

}  // namespace orrery
