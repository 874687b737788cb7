// SPDX-License-Identifier: Apache-2.0
//
// Which shard of each parameter belongs to which rank: a flat piece or the whole tensor
// (docs/design.md, "Placements and axes"). A unit is the parameters that one exchange gathers:
// their concatenation, in the natural order of their names, is cut into shards of about equal size.
// A cut inside a tensor lies on a multiple of ORR_SUM_BLOCK = 1024 elements, so that sums of blocks
// are the same on any number of ranks. A unit of b f32[1000] and w f32[5000] on three ranks has the
// cuts 0, 1000, 1000, 1000 of b and 0, 1024, 3072, 5000 of w.
#pragma once

#include <orrery/strategy.h>

#include <string>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// Parameters that one exchange gathers, and the cuts of each: piece i is the elements from cuts[i]
// to cuts[i + 1]. There is one piece for each rank of the axis that gradients are summed over; the
// rank gets that piece of the sums. The ranks with coordinate s on Sharded::axis all hold shard s,
// which consists of the pieces of all of them: it is one piece, unless ranks are replicas.
struct Unit {
  Sharded how;
  std::vector<ValueId> params;       // in the natural order of names
  std::vector<Dims> pieces, shards;  // the cuts of each, parallel to params
  // By coordinate on the axis that gradients are summed over: the index of its piece.
  std::vector<int> piece_of;
  // What forward reads, parallel to params: each parameter itself, or its compute copy. Then the
  // copy is gathered, and the parameter is always sharded.
  std::vector<ValueId> read;

  // Whether `read` lies in pieces.
  bool in_pieces() const { return how.what >= ORR_SHARD_PARAM; }
  // How what is sharded lies over `how.axis`.
  Placement lies() const {
    if (how.owner != kNone) return Placement::of_one(how.owner);
    return {Placement::flat, kNone, {}, {}};
  }
};

// The cuts of tensors with these numbers of elements into pieces of about equal total size. Those
// inside of tensor i are multiples of grains[i], or, without grains, of ORR_SUM_BLOCK.
std::vector<Dims> cut_evenly(const Dims& sizes, int pieces, const Dims& grains = {});

// The units of a program: the parameters that a strategy shards and that this rank's stage has,
// without scalars. They are equal on all ranks that share the batch, and in every program that
// names the parameters.
std::vector<Unit> find_units(const Program& p, const Mesh& mesh);

// The bytes of Unit::read on the rank that has most of it.
uint64_t most_bytes(const Program& p, const Unit& unit);

// How many ranks hold the same shard (Mesh::replicas_of).
int pieces_per_shard(const Mesh& mesh, const Sharded& how);

// The elements of a tensor with these cuts that shard `s` holds.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
Range held_by(const Dims& cuts, int s);

// Whether a cut lies inside the tensor.
bool cut_inside(const Dims& cuts);
// Cuts of n elements that give all of them to one rank: the last one that has elements by `like`.
Dims cut_alike(const Dims& like, int64_t n);
// The cuts of a tensor of n elements that belongs to a parameter with these cuts. If n differs from
// the parameter's elements, one rank has both whole.
inline Dims cut_as(const Dims& cuts, int64_t n) {
  return n == cuts.back() ? cuts : cut_alike(cuts, n);
}

}  // namespace orrery
