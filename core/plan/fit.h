// SPDX-License-Identifier: Apache-2.0
//
// Finds the largest microbatch whose plan fits into a rank's memory.
#pragma once

#include <string>
#include <vector>

#include "edit/blueprint.h"

namespace orrery {

// Sets the blueprint's microbatches to the smallest number with which no rank's peak exceeds
// `limit` bytes, and returns a text for the user. Throws Error if there is no such number. Calls
// strategies and scripts. [main thread]
std::string fit_microbatches(Blueprint& b, const std::vector<std::string>& kernels, uint64_t limit);

}  // namespace orrery
