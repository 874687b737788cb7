// SPDX-License-Identifier: Apache-2.0
//
// What ranks must have in common before they go on together. [main thread]
#pragma once

#include <cstdint>
#include <string>

#include "run/variant.h"

namespace orrery {

// Of the logical program and its microbatches.
uint64_t program_digest(const Blueprint& b);

// All ranks must have traced the same step: one that differs would hang its peers. Throws Error
// with `line` and the ranks that differ from rank 0. Collective.
void compare_across_ranks(const Blueprint& b, const std::string& line);

// Rank 0's text on every rank. Collective.
std::string text_of_rank_0(const std::string& text, const std::string& line);

}  // namespace orrery
