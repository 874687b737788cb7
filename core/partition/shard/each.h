// SPDX-License-Identifier: Apache-2.0
//
// What units with Sharded::each do again for every microbatch, where microbatches run one after
// another (docs/strategies/zero.md, "Microbatches").
#pragma once

#include <map>
#include <vector>

#include "partition/shard/chains.h"

namespace orrery {

// By op: whether its results are the same for all microbatches, and what runs once a step needs
// one of them (the update, a report of the step). Such an op runs once, so it reads parameters that
// are gathered once.
std::vector<bool> needed_once(const Program& p);

// Sums over the samples of a microbatch, gradients of members of one unit, whose pieces leave the
// rank together.
struct Scatter {
  size_t unit = 0;
  std::map<size_t, ValueId> sums = {};       // by member
  OpId ready = kNone;                        // the op that makes the last of them
  ValueId piece = kNone;                     // this rank's pieces of all, for one microbatch
  Dims own = {};                             // how many elements of each that is, parallel to sums
  std::map<size_t, ValueId> completed = {};  // by member: this rank's piece of the sum of all
};

// The sums of `p` that are sent so; none unless the mesh allows to add them in any order.
std::vector<Scatter> find_scatters(const Program& p, const Mesh& mesh,
                                   const std::vector<Unit>& units, const Chains& chains);

}  // namespace orrery
