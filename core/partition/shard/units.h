// SPDX-License-Identifier: Apache-2.0
//
// Which piece of which parameter belongs to which rank: flat pieces or whole tensors
// (docs/design.md, "Placements and axes"). Parameters of a unit travel together; their
// concatenation, in the natural order of their names, is cut into pieces of about equal size.
// Inside a tensor a cut lies on a multiple of ORR_SUM_BLOCK elements, so that block sums are the
// same on any number of ranks.
#pragma once

#include <orrery/strategy.h>

#include <string>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// A parameter's cuts: piece i is its elements [cuts[i], cuts[i + 1]). There is one piece for each
// rank of the axis that gradients are summed over, which owns it of these sums; the ranks with
// coordinate s on Sharded::axis, one or several, hold shard s, which is the pieces of all of them.
struct Unit {
  Sharded how;
  std::vector<ValueId> params;       // in the natural order of names
  std::vector<Dims> pieces, shards;  // their cuts, parallel to params
  // What forward reads of them, parallel to params: their compute copies, which then travel, and
  // the parameters lie in pieces in any case; or they themselves.
  std::vector<ValueId> read;

  // Whether what forward reads lies in pieces.
  bool in_pieces() const { return how.what >= ORR_SHARD_PARAM; }
};

// The cuts of tensors with these numbers of elements.
std::vector<Dims> cut_evenly(const Dims& sizes, int pieces);

// The units of a program: parameters that a strategy shards and that this rank's stage has, but no
// scalars. Equal on all ranks that share the batch, and in every program that names the parameters.
std::vector<Unit> find_units(const Program& p, const Mesh& mesh);

// The most bytes that a rank keeps of what forward reads of a unit.
uint64_t most_held(const Program& p, const Unit& unit);

// The piece of the ranks with this coordinate on the axis that gradients are summed over.
int piece_of(const Mesh& mesh, const Sharded& how, int coordinate);
// The axes over which gradients are summed, but that of the shards: who differs there alone holds
// the same shard.
std::string replicas_of(const Mesh& mesh, const Sharded& how);
int pieces_per_shard(const Mesh& mesh, const Sharded& how);

// Whether a cut lies inside the tensor.
bool cut_inside(const Dims& cuts);
// Cuts of n elements, of which one piece has all: the one that has the last of `like`.
Dims cut_alike(const Dims& like, int64_t n);

}  // namespace orrery
