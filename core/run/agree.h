// SPDX-License-Identifier: Apache-2.0
//
// What ranks must have in common before they go on together. [main thread]
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "run/variant.h"

namespace orrery {

// Of the logical program and its microbatches.
uint64_t program_digest(const Blueprint& b);

// All ranks must have traced the same step: one that differs would hang its peers. Throws Error
// with `line` and the ranks that differ from rank 0. Collective.
void compare_across_ranks(const Blueprint& b, const std::string& line);

// Rank 0's numbers on every rank, for all are to compute with the same: mathematical libraries
// differ between hosts in the last bit, and a script may make them of what only its rank has seen.
// Collective.
std::map<std::string, double> numbers_of_rank_0(std::map<std::string, double> numbers,
                                                const std::string& line);

// Rank 0's text on every rank. Collective.
std::string text_of_rank_0(const std::string& text, const std::string& line);

}  // namespace orrery
