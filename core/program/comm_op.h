// SPDX-License-Identifier: Apache-2.0
//
// What the passes that distribute a program say of an exchange to each other and to lowering,
// beside the attributes that the kind has for all who add it (program/ops/comm.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "base/name.h"
#include "program/types.h"

namespace orrery {

enum class Phase : int32_t { forward, backward, update };

// How a completed sum over the batch is shared out where training state is sharded: rank r of the
// axis gets the elements [begin[r], begin[r] + count[r]).
struct SumShards {
  Dims begin, count;
  // Members of a unit travel together (partition/shard/units.h): the gradients of the first uses of
  // its parameters, then those of the second uses, and so on.
  int64_t unit = kNone, member = 0, use = 0;
  Name origin = {};   // the strategy that asked for it
  bool free = false;  // the memory of the summands may be used again once each rank has its piece
};

struct CommOp {
  // send and recv: the coordinate at the other end, and the number by which both ends know what
  // travels.
  int32_t peer = 0, tag = 0;
  // send and recv: the chunk of the model and the phase of the action that makes what is sent.
  int32_t chunk = 0;
  Phase made_in = Phase::forward;
  // Peers wait for it, whether its result is needed here or not.
  bool awaited = false;
  // A sum in the binary tree over the ranks (orrery/ops.h, LEAVES), not in their order.
  bool tree = false;
  // all_gather: the result is the new value of the states that are kept together with the one of
  // this name (lower/kernels/row_places.h). "": of none.
  Name row = {};
  // Where microbatches run one after another: it runs for each. A gathering of what is the same for
  // all would run once otherwise; a reduce_scatter takes the sums of that microbatch alone.
  bool each = false;
  // Collectives of one group are alike and do not depend on each other: they travel together.
  int32_t group = kNone;
  // total: the pieces of the sum that ranks get; none: all ranks get the sum whole.
  std::optional<SumShards> pieces = {};
};

}  // namespace orrery
