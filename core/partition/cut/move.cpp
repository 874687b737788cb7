// SPDX-License-Identifier: Apache-2.0
#include "partition/cut/move.h"

#include <algorithm>

#include "base/error.h"
#include "partition/shared/gather.h"
#include "program/build.h"
#include "program/op.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

// Appends an exchange. Its result has the relation to the batch that x has; `shift` is how far the
// batch dim moves.
ValueId exchange(Program& p, const char* kind, ValueId x, Attrs attrs, const Member& me, int shift,
                 bool tree = false) {
  Op op;
  if (tree) op.set_exchange({.tree = true});
  op.kind = kind, op.attrs = std::move(attrs), op.in = {x};
  op.attrs.set("axis", me.axis), op.attrs.set("origin", me.origin);
  const Type type = op_def(kind).infer(args_of(p, op)).at(0);
  const ValueId y = append_op(p, std::move(op), type);
  const Value& from = p.value(x);
  p.mutable_value(y).set_batch(from.batch(),
                               from.batch_dim() == kNone ? kNone : from.batch_dim() + shift);
  return y;
}

bool equal(const Dims& segments) {
  return std::all_of(segments.begin(), segments.end(), [&](int64_t n) { return n == segments[0]; });
}

// Turns [ranks, .., n * k, ..], the result of an all_gather, into [.., n * ranks * k, ..].
ValueId interleave(Program& p, ValueId x, size_t dim, int64_t n, int64_t ranks) {
  Dims dims = p.type(x).dims;
  int64_t k = dims[dim + 1] / n;
  ValueId wide = build::reshape(p, x, with_dim(dims, dim + 1, {n, k}));
  Dims merged = with_dim(dims, dim + 1, {n * ranks * k});
  merged.erase(merged.begin());
  return build::reshape(p, build::move_dim(p, wide, 0, dim + 1), merged);
}

// Gathers parts of equal size: to the whole value, or with sample_exchange to the rank's samples.
ValueId gather_even(Program& p, ValueId x, const Placement& cut, const Member& me,
                    const char* kind = "all_gather") {
  const size_t dim = static_cast<size_t>(cut.dim);
  ValueId all = exchange(p, kind, x, {{"ranks", int64_t{me.ranks}}}, me, 1);
  if (equal(cut.segments))
    return interleave(p, all, dim, static_cast<int64_t>(cut.segments.size()), me.ranks);
  Dims shares;
  for (int64_t n : cut.segments) shares.push_back(n / me.ranks);
  std::vector<ValueId> wholes;
  for (ValueId segment : build::split(p, all, cut.dim + 1, shares))
    wholes.push_back(interleave(p, segment, dim, 1, me.ranks));
  return build::concat(p, wholes, cut.dim);
}

// Gathers parts of unequal size: for the way, the cut dim becomes the first one.
ValueId gather_uneven(Program& p, ValueId x, const Dims& dims, const Placement& cut,
                      const Member& me) {
  const size_t dim = static_cast<size_t>(cut.dim);
  if (cut.segments.size() != 1)
    fail(
        ORR_UNIMPLEMENTED,
        "{}a value in uneven shares of {} parts cannot be gathered over axis '{}': choose a number "
        "of ranks that divides {}",
        p.site().prefix(), cut.segments.size(), me.axis, to_string(cut.segments));
  if (p.value(x).batch() != Batch::none)
    fail(ORR_UNIMPLEMENTED,
         "{}a value of the batch in uneven shares of {} cannot be gathered over axis '{}': "
         "choose a number of ranks that divides {}",
         p.site().prefix(), to_string(dims), me.axis, dims[dim]);
  Dims turned = dims, cuts = {0};
  turned.erase(turned.begin() + cut.dim), turned.insert(turned.begin(), dims[dim]);
  for (int r = 0; r < me.ranks; ++r)
    cuts.push_back(Member{r, me.ranks, {}, {}}.end(dims[dim]) *
                   (Type{ORR_F32, dims}.elements() / dims[dim]));
  const ShardedTensor pieces{{build::move_dim(p, x, dim, 0)}, cuts};
  const ValueId all =
      gather_together(p, {pieces}, p.type(x).dtype, {me.axis, me.origin, me.rank})[0];
  return build::move_dim(p, build::reshape(p, all, turned), 0, dim);
}

// Moves x from parts of one dim to parts of another in one exchange: every rank sends each other
// rank the block in which the two ranks' parts meet.
ValueId trade(Program& p, ValueId x, const Placement& from, const Placement& to, const Member& me) {
  const size_t dim = static_cast<size_t>(to.dim);
  const int64_t n = static_cast<int64_t>(to.segments.size()), k = to.segments[0] / me.ranks;
  ValueId wide = build::reshape(p, x, with_dim(p.type(x).dims, dim, {n, me.ranks, k}));
  ValueId all = exchange(p, "all_to_all", build::move_dim(p, wide, dim + 1, 0), {}, me, 0);
  Dims dims = p.type(all).dims;
  dims.erase(dims.begin() + to.dim + 2), dims[dim + 1] = n * k;
  return interleave(p, build::reshape(p, all, dims), static_cast<size_t>(from.dim),
                    static_cast<int64_t>(from.segments.size()), me.ranks);
}

// Turns summands into parts of the sum, or the rank's own samples into parts of everyone's samples.
ValueId scatter(Program& p, ValueId x, const Placement& cut, const Member& me, const char* kind,
                bool tree = false) {
  const size_t dim = static_cast<size_t>(cut.dim);
  const int64_t n = static_cast<int64_t>(cut.segments.size()), k = cut.segments[0] / me.ranks;
  Dims dims = p.type(x).dims;
  ValueId wide = build::reshape(p, x, with_dim(dims, dim, {n, me.ranks, k}));
  ValueId mine = exchange(p, kind, build::move_dim(p, wide, dim + 1, 0), {}, me, -1, tree);
  return build::reshape(p, mine, with_dim(dims, dim, {n * k}));
}

// Whether one all_to_all makes this move.
bool trades(const Placement& from, const Placement& to, int ranks) {
  return from.kind == Placement::split && to.kind == Placement::split && from.dim != to.dim &&
         from.is_even(ranks) && to.is_even(ranks) && equal(from.segments) && equal(to.segments);
}

}  // namespace

double move_cost(const Placement& from, const Placement& to, int ranks) {
  const double share = (ranks - 1.0) / ranks, copy = 1e-6;
  if (from == to) return 0;
  if (from.kind == Placement::samples || to.kind == Placement::samples) {
    const Placement& parts = from.kind == Placement::samples ? to : from;
    const bool even =
        parts.kind == Placement::split && parts.is_even(ranks) && equal(parts.segments);
    return even ? share : 2 * kNever;
  }
  if (to.kind == Placement::partial) return from.kind == Placement::whole ? copy : 2 * kNever;
  if (from.kind == Placement::whole) return copy;
  if (from.kind == Placement::owned) return to.kind == Placement::whole ? 1 : 1 + copy;
  if (trades(from, to, ranks)) return share / ranks;
  if (from.kind == Placement::split) return to.kind == Placement::whole ? share : share + copy;
  bool scattered = to.kind == Placement::split && to.is_even(ranks) && equal(to.segments);
  return scattered ? share : 2 * share + (to.kind == Placement::split ? copy : 0);
}

ValueId share(Program& p, ValueId x, const Placement& cut, const Member& from, const Member& to) {
  for (int64_t n : cut.segments)
    if (n < to.ranks)
      fail(ORR_UNIMPLEMENTED,
           "{}a dim that consists of parts of {} cannot be cut over {} ranks or chunks of axis "
           "'{}', of which some would have nothing: choose {} or less, or leave the layer whole",
           p.site().prefix(), n, to.ranks, to.axis, n);
  const size_t dim = static_cast<size_t>(cut.dim);
  auto piece = [&](ValueId segment, int64_t n, int32_t at) {  // n: the extent of the whole segment
    return build::slice(p, segment, at, to.begin(n) - from.begin(n), to.end(n) - from.begin(n));
  };
  const int64_t n = static_cast<int64_t>(cut.segments.size()), each = cut.segments[0];
  if (equal(cut.segments)) {
    Dims dims = p.type(x).dims;
    ValueId wide =
        build::reshape(p, x, with_dim(dims, dim, {n, from.end(each) - from.begin(each)}));
    ValueId mine = piece(wide, each, cut.dim + 1);
    return build::reshape(p, mine, with_dim(dims, dim, {n * (to.end(each) - to.begin(each))}));
  }
  Dims sizes;
  for (int64_t segment : cut.segments) sizes.push_back(from.end(segment) - from.begin(segment));
  std::vector<ValueId> mine;
  for (ValueId segment : build::split(p, x, cut.dim, sizes))
    mine.push_back(piece(segment, cut.segments[mine.size()], cut.dim));
  return build::concat(p, mine, cut.dim);
}

ValueId broadcast(Program& p, ValueId x, int root, const Member& me) {
  if (me.ranks == 1) return x;
  return exchange(p, "broadcast", x, {{"root", int64_t{root}}}, me, 0);
}

ValueId all_reduce(Program& p, ValueId x, const Member& me, const char* fn) {
  if (me.ranks == 1) return x;
  const std::string how = fn;
  return exchange(p, "all_reduce", x, {{"fn", how}}, me, 0, me.tree && how == "sum");
}

ValueId move(Program& p, ValueId x, const Dims& dims, const Placement& from, const Placement& to,
             const Member& me) {
  if (from == to || me.ranks == 1) return x;
  if (from.kind == Placement::samples) return scatter(p, x, to, me, "sample_exchange");
  if (to.kind == Placement::samples) return gather_even(p, x, from, me, "sample_exchange");
  if (from.kind == Placement::partial) {
    bool scattered = to.kind == Placement::split && to.is_even(me.ranks) && equal(to.segments);
    if (scattered) return scatter(p, x, to, me, "reduce_scatter", me.tree);
    x = all_reduce(p, x, me);
  } else if (trades(from, to, me.ranks)) {
    return trade(p, x, from, to, me);
  } else if (from.kind == Placement::split) {
    x = from.is_even(me.ranks) ? gather_even(p, x, from, me) : gather_uneven(p, x, dims, from, me);
  }
  return to.kind == Placement::split ? share(p, x, to, Member{}, me) : x;
}

}  // namespace orrery
