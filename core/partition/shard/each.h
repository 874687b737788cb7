// SPDX-License-Identifier: Apache-2.0
//
// Units with Sharded::each are gathered again for every microbatch, and their gradients leave after
// every microbatch, where microbatches run one after another (docs/strategies/zero.md,
// "Microbatches"). For two microbatches of a layer with the parameter w:
//
//   gather w, forward, gather w, backward, reduce-scatter dw; the same again; update w
#pragma once

#include <map>
#include <vector>

#include "partition/shard/sharded_params.h"

namespace orrery {

// By op: whether it runs once a step, and so reads parameters that are gathered once. It does so if
// its results are the same for all microbatches, and the update, a result of the step, a peer or
// another op that runs once needs one of them.
std::vector<bool> needed_once(const Program& p);

// Gradients of members of one unit, sums over the samples of one microbatch, that one
// reduce-scatter sends.
struct Scatter {
  size_t unit = 0;
  std::map<size_t, ValueId> sums = {};       // by member
  OpId ready = kNone;                        // the op that makes the last of them
  ValueId piece = kNone;                     // this rank's shards of all, one after another
  Dims own = {};                             // how many elements each has, parallel to sums
  std::map<size_t, ValueId> completed = {};  // by member: this rank's shard, of all microbatches
};

// The sums of `p` that are sent so. There are none unless they may be added in any order
// (Mesh::fast_sums).
std::vector<Scatter> find_scatters(const Program& p, const Mesh& mesh,
                                   const std::vector<Unit>& units, const ShardedParams& params);

}  // namespace orrery
