// SPDX-License-Identifier: Apache-2.0
//
// What the search for the largest microbatch that fits a rank's memory asks
// (scripts/orrery/plan/fit.lua). Both call strategies and scripts. [main thread]
#pragma once

#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "plan/json.h"

namespace orrery {

// For each possible size of a microbatch, largest first, the smallest number of microbatches, with
// the batch's samples and whether microbatches run one after another: if they do not, memory does
// not depend on their number, and there is one.
Json counts_json(const Blueprint& b);
// The bytes of the rank that needs most, and which it is.
Json peak_json(const Blueprint& b, const std::vector<std::string>& kernels);

}  // namespace orrery
