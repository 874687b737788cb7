// SPDX-License-Identifier: Apache-2.0
//
// Where stage 3 gathers the parameters that lie in pieces.
#pragma once

#include <cstdint>
#include <vector>

#include <orrery/sdk/program.hpp>

namespace zero {

struct Sharded {
  int32_t parameter, unit;  // parameters of equal unit are gathered together
};

struct Gathering {
  int64_t ahead = 1;    // units that are gathered before they are read, counted in units
  bool reshard = true;  // again for backward
  bool each = false;    // again for each microbatch
};

// Adds the ops that gather each unit before the first op that reads one of its parameters, and lets
// all such ops read what was gathered. `sharded` is in the order in which parameters travel.
// REQUIRES: all edits of the step or evaluation are done.
void write_gathers(const orr::Program& step, const std::vector<Sharded>& sharded,
                   const Gathering& how);

}  // namespace zero
