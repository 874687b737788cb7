// SPDX-License-Identifier: Apache-2.0
//
// How a value lies over the ranks of one mesh axis (docs/design.md, "Placements and axes").
#pragma once

#include <string>

#include "program/program.h"

namespace orrery {

// whole: every rank holds all of it.
// parts: `dim` consists of `segments`, one after another, and a rank holds its share of each (a
//   fused weight [q|k|v] has three).
// sum: every rank holds a summand.
// owned: the rank with the coordinate `dim` holds all of it, the others nothing.
// dealt: the axis deals the batch, and every rank holds its own samples. In all other layouts, a
//   rank holds the samples of all ranks of the axis.
struct Cut {
  enum Kind { whole, parts, sum, owned, dealt } kind = whole;
  int dim = kNone;
  Dims segments;

  static Cut of_samples() { return {dealt, kNone, {}}; }
  static Cut summand() { return {sum, kNone, {}}; }
  static Cut of_one(int coordinate) { return {owned, coordinate, {}}; }
  static Cut of(int dim, Dims segments) { return {parts, dim, std::move(segments)}; }
  bool is_even(int ranks) const;  // all ranks hold the same number of indices of each segment
  bool is_along(int d) const { return kind == parts && dim == d; }
  bool is_plain(int d) const { return is_along(d) && segments.size() == 1; }
  bool operator==(const Cut&) const = default;
};

// One rank as a member of the axis.
struct Member {
  int rank = 0, ranks = 1;
  std::string axis, origin;
  bool tree = false;  // sums over the axis are added in a tree over the ranks, else in rank order

  // The indices [begin, end) of a segment of n that the rank holds.
  int64_t begin(int64_t n) const { return n * rank / ranks; }
  int64_t end(int64_t n) const { return n * (rank + 1) / ranks; }
};

// The type of what the rank holds of a value of type `whole`.
Type held(const Type& whole, const Cut& cut, const Member& me);
// The indices of the cut dim that the rank holds, for a value that is cut in parts.
Part::Ranges ranges_of(const Cut& cut, const Member& me);

}  // namespace orrery
