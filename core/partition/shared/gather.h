// SPDX-License-Identifier: Apache-2.0
//
// Gathers tensors that lie in pieces, several of them by one message.
#pragma once

#include <string>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// A tensor of which the rank at coordinate r of an axis has the elements [cuts[r], cuts[r + 1]).
struct ShardedTensor {
  std::vector<ValueId> own;  // this rank's, one after another, in any shapes; kNone: no element
  Dims cuts;
};

// The axis whose ranks have the pieces.
struct GatherAxis {
  std::string axis, origin;  // origin: the strategy that asked for the sharding
  int me = 0;                // this rank's coordinate
};
inline GatherAxis gather_axis(const Sharded& how, const Mesh& mesh, int rank) {
  return {how.axis, how.origin, mesh.coordinate(how.axis, rank)};
}

// Returns each whole tensor, flat, on all ranks of the axis. It is one all_gather, in which a rank
// sends its pieces of all tensors, one after another. Every rank takes part in it, also one that
// does not need the result.
std::vector<ValueId> gather_together(Program& p, const std::vector<ShardedTensor>& tensors,
                                     int32_t dtype, const GatherAxis& over,
                                     const CommOp& how = {.awaited = true});

}  // namespace orrery
