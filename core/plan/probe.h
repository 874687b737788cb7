// SPDX-License-Identifier: Apache-2.0
//
// What one rank does for one microbatch of the whole model, from which a search estimates pipelines
// and other numbers of microbatches without planning them.
#pragma once

#include "edit/blueprint.h"
#include "plan/json.h"
#include "plan/machine_model.h"

namespace orrery {

// REQUIRES: the stack gives each rank one microbatch.
Json probe_json(const Blueprint& b, const std::vector<std::string>& kernels,
                const Machine& machine);

}  // namespace orrery
