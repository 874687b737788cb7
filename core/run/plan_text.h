// SPDX-License-Identifier: Apache-2.0
//
// What `orrery plan` prints: time, memory by category, every collective with bytes and cause,
// FLOPs; or, as the options of the command say, what the strategies change, or the largest
// microbatch that fits.
#pragma once

#include <string>
#include <vector>

#include "run/plan_diff.h"

namespace orrery {

// Runs and allocates nothing. [main thread]
std::string plan_text(const PlanSource& source);

}  // namespace orrery
