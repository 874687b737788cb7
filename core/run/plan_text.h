// SPDX-License-Identifier: Apache-2.0
//
// What `orrery plan` prints: memory by category, every collective with bytes and cause, FLOPs.
#pragma once

#include <string>
#include <vector>

#include "run/variant.h"

namespace orrery {

// Plans every distinct rank of the blueprint; runs and allocates nothing.
std::string plan_text(const Blueprint& blueprint, const std::vector<StrategyUse>& stack,
                      const std::vector<std::string>& kernels);

}  // namespace orrery
