// SPDX-License-Identifier: Apache-2.0
//
// Which kernel plugin computes a launch.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// Sets the launch's plugin, the one of these names with the highest score, and what it says of
// itself. Throws Error that lists every plugin's reason if none takes it.
orr_support choose_kernel(Launch& launch, const std::vector<std::string>& names);
// Whether any of them takes it.
bool is_taken(const Launch& launch, const std::vector<std::string>& names);
// The scratch that the chosen one needs, in bytes.
uint64_t workspace_of(const Launch& launch, const std::vector<std::string>& names);

}  // namespace orrery
