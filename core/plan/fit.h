// SPDX-License-Identifier: Apache-2.0
//
// The largest microbatch whose plan fits into a rank's memory.
#pragma once

#include <string>
#include <vector>

#include "edit/blueprint.h"

namespace orrery {

// Sets the blueprint's microbatches to the fewest whose peak is at most `limit` bytes on every
// rank, and says so. Throws Error if there is none, with what is missing. Asks strategies and
// scripts. [main thread]
std::string fit_microbatches(Blueprint& b, const std::vector<std::string>& kernels, uint64_t limit);

}  // namespace orrery
