// SPDX-License-Identifier: Apache-2.0
//
// Gatherings of new states whose result can lie where the states are: the pieces are computed into
// the old values, the others arrive beside them, and nothing is packed or copied.
#pragma once

#include <map>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

struct Home {
  size_t row;       // of LocalProgram::neighbours
  uint64_t offset;  // of this rank's part, bytes
};

// By all_gather with a "home". It has none if somebody reads an old value after its place is taken:
// last_read[v] is the last op that reads v or a view of it, kNone if none does.
std::map<OpId, Home> find_homes(const LocalProgram& local, const std::vector<int>& last_read);

}  // namespace orrery
