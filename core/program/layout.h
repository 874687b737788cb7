// SPDX-License-Identifier: Apache-2.0
//
// How a value lies over the ranks: its layout, a list of placements, one for each mesh axis on
// which it is not simply whole (docs/design.md, "Placements and axes").
//
//   x           f32[8,1000]     batch split dim 1, tensor split dim 2
//
// says that a rank has the rows of its samples, and of those its share of the columns.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/name.h"
#include "program/part.h"
#include "program/types.h"

namespace orrery {

// A value's relation to the batch (program/relate.h).
enum class Batch : int32_t { none, sharded, partial, mean };

// How a value lies over the ranks of one axis.
// whole: every rank has all of it.
// split: along `dim`, which consists of `segments`, one after another; a rank has its share of each
//   (a fused weight [q|k|v] has three).
// partial: every rank has a summand of it.
// owned: the ranks with the coordinates `at` have all of it, the others nothing.
// samples: the axis deals the batch, and a rank has its own samples. In all other placements over
//   such an axis, a rank has the samples of all its ranks.
// flat: its elements in row-major order are cut into one piece for each rank.
struct Placement {
  enum Kind { whole, split, partial, owned, samples, flat } kind = whole;
  int dim = kNone;
  Dims segments = {}, at = {};

  static Placement of_samples() { return {samples, kNone, {}, {}}; }
  static Placement summand() { return {partial, kNone, {}, {}}; }
  static Placement of_one(int coordinate) { return {owned, kNone, {}, {coordinate}}; }
  static Placement along(int dim, Dims segments) { return {split, dim, std::move(segments), {}}; }
  bool is_even(int ranks) const;  // all ranks have the same number of indices of each segment
  bool is_along(int d) const { return kind == split && dim == d; }
  bool is_plain(int d) const { return is_along(d) && segments.size() == 1; }
  int owner() const { return static_cast<int>(at.at(0)); }  // REQUIRES: of_one
  bool operator==(const Placement&) const = default;
};

// All placements of a value, its relation to the batch, and the axes on which it varies. One of a
// few lists that are kept for the whole process: copied and compared as a pointer. [any thread]
class Layout {
 public:
  using On = std::pair<Name, Placement>;  // the axis, or product of axes, and the placement

  Batch batch() const { return all_->batch; }
  // 0-based; microbatches are equal consecutive pieces of it. kNone where nothing is sharded.
  int32_t batch_dim() const { return all_->batch_dim; }
  // Mesh axes, "a*b", on which every coordinate has a value of its own, each of the full shape
  // (program/varying.h). "": one value everywhere.
  const Name& varying() const { return all_->varying; }
  // In the order in which they cut the value. One that is `whole` says that the samples of all
  // ranks of the axis, which deals the batch, are here.
  const std::vector<On>& placements() const { return all_->placements; }

  Layout with_batch(Batch batch, int32_t dim = kNone) const;
  Layout with_varying(const Name& axes) const;
  // With this placement in place of what there was on the axis, or without any there.
  Layout with(const Name& axis, const Placement& how) const;
  Layout without(const Name& axis) const;
  bool operator==(const Layout& other) const { return all_ == other.all_; }

 private:
  struct All {
    Batch batch = Batch::none;
    int32_t batch_dim = kNone;
    Name varying;
    std::vector<On> placements;
    bool operator==(const All&) const = default;
  };
  struct Hash {
    size_t operator()(const All& all) const;
  };
  static const All everywhere_;
  static Layout of(All all);
  const All* all_ = &everywhere_;
};

// The type of the whole value of which a rank has `part`, with this layout. REQUIRES: no placement
// is flat.
Type whole_type(Type part, const Layout& layout);
// "batch split dim 1, tensor split dim 2"; "whole" if there is nothing to say.
std::string to_string(const Layout& layout);

// One rank as a member of an axis.
struct Member {
  int rank = 0, ranks = 1;
  std::string axis, origin;
  bool tree = false;  // sums over the axis are added in a tree over the ranks, else in rank order

  // The indices [begin, end) of a segment of n that the rank has.
  int64_t begin(int64_t n) const { return n * rank / ranks; }
  int64_t end(int64_t n) const { return n * (rank + 1) / ranks; }
};

// The type of what the rank has of a value of type `whole`.
Type held(const Type& whole, const Placement& how, const Member& me);
// The indices of the split dim that the rank has.
Part::Ranges ranges_of(const Placement& how, const Member& me);

}  // namespace orrery
