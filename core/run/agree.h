// SPDX-License-Identifier: Apache-2.0
//
// What ranks must have in common before they go on together. [main thread]
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run/variant.h"

namespace orrery {

// Of the logical program and its microbatches.
uint64_t program_digest(const Blueprint& b);

// All ranks must have traced the same step, over states that begin alike: one that differs would
// hang its peers, or train another model. Throws Error with `line` and the ranks that differ from
// rank 0. Collective.
void compare_across_ranks(const Blueprint& b, const std::string& line);

// What each rank brings to a step that all take together, and what comes of it.
struct Meeting {
  // Rank 0's on every rank afterwards, for all are to compute with the same: mathematical libraries
  // differ between hosts in the last bit, and a script may make them of what only its rank has
  // seen.
  std::map<std::string, double> numbers;
  bool written = false;  // the script has given a state a value; afterwards: on any rank
  bool spoilt = false;   // this rank cannot go on; afterwards: any rank
  int64_t step = 0;      // these must be the same everywhere
  uint64_t seed = 0, batch = 0;
};
// One exchange. Throws Error with `line` where the ranks differ. Collective.
void meet(Meeting& meeting, const std::string& line);

// An error that any rank has met, "" none, is thrown by all: that of the lowest rank. `what` is
// what the ranks do, as a message calls it. Collective.
void fail_together(const std::string& error, const std::string& what, const std::string& line);

// One number of every rank, by rank. Collective.
std::vector<uint64_t> numbers_of_all(const std::vector<uint64_t>& mine, const std::string& what,
                                     const std::string& line);

}  // namespace orrery
