// SPDX-License-Identifier: Apache-2.0
#include "lower/cut.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "lower/gather.h"
#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

// An exchange relates to the batch as what it carries; `shift` is how far the batch dim moves.
ValueId exchange(Program& p, const char* kind, ValueId x, Attrs attrs, const Member& me,
                 int shift) {
  Op op;
  op.kind = kind, op.attrs = std::move(attrs), op.in = {x}, op.phase = p.phase(),
  op.site = p.site();
  op.attrs["axis"] = me.axis, op.attrs["origin"] = me.origin;
  const bool sums = op.kind == "all_reduce" || op.kind == "reduce_scatter";
  if (me.tree && sums && attr_text(op.attrs, "fn", "sum") == "sum") op.attrs["tree"] = int64_t{1};
  const Type type = op_def(kind).infer(args_of(p, op)).at(0);
  const Value from = p.value(x);
  op.out = {p.new_value(type, Role::activation)};
  Value& y = p.mutable_value(op.out[0]);
  y.batch = from.batch;
  y.batch_dim = from.batch_dim == kNone ? kNone : from.batch_dim + shift;
  p.append(std::move(op));
  return p.ops().back().out[0];
}

bool equal(const Dims& segments) {
  return std::all_of(segments.begin(), segments.end(), [&](int64_t n) { return n == segments[0]; });
}

// dims with `dim` replaced by several.
Dims widened(Dims dims, size_t dim, const Dims& by) {
  dims.erase(dims.begin() + static_cast<long>(dim));
  dims.insert(dims.begin() + static_cast<long>(dim), by.begin(), by.end());
  return dims;
}

ValueId transpose_to(Program& p, ValueId x, size_t from, size_t to) {
  if (from == to) return x;
  Dims perm(p.type(x).dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  int64_t moved = perm[from];
  perm.erase(perm.begin() + static_cast<long>(from));
  perm.insert(perm.begin() + static_cast<long>(to), moved);
  return build::transpose(p, x, perm);
}

// [ranks, .., n * k, ..] as it comes from all_gather, to [.., n * ranks * k, ..].
ValueId interleave(Program& p, ValueId x, size_t dim, int64_t n, int64_t ranks) {
  Dims dims = p.type(x).dims;
  int64_t k = dims[dim + 1] / n;
  ValueId wide = build::reshape(p, x, widened(dims, dim + 1, {n, k}));
  Dims merged = widened(dims, dim + 1, {n * ranks * k});
  merged.erase(merged.begin());
  return build::reshape(p, transpose_to(p, wide, 0, dim + 1), merged);
}

// Parts to the whole of all of it, or of the rank's own samples.
ValueId gather_even(Program& p, ValueId x, const Cut& cut, const Member& me,
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

// Shares of unequal size travel with the cut dim first.
ValueId gather_uneven(Program& p, ValueId x, const Dims& dims, const Cut& cut, const Member& me) {
  const size_t dim = static_cast<size_t>(cut.dim);
  if (cut.segments.size() != 1)
    fail(ORR_UNIMPLEMENTED, "{}uneven shares of {} segments cannot be gathered over axis '{}'",
         p.site().prefix(), cut.segments.size(), me.axis);
  if (p.value(x).batch != Batch::none)
    fail(ORR_UNIMPLEMENTED,
         "{}a value of the batch in uneven shares of {} cannot be gathered over axis '{}': "
         "choose a number of ranks that divides {}",
         p.site().prefix(), to_string(dims), me.axis, dims[dim]);
  Dims turned = dims, cuts = {0};
  turned.erase(turned.begin() + cut.dim), turned.insert(turned.begin(), dims[dim]);
  for (int r = 0; r < me.ranks; ++r)
    cuts.push_back(Member{r, me.ranks, {}, {}}.end(dims[dim]) *
                   (Type{ORR_F32, dims}.elements() / dims[dim]));
  const Pieces pieces{{transpose_to(p, x, dim, 0)}, cuts};
  const ValueId all =
      gather_together(p, {pieces}, p.type(x).dtype, {me.axis, me.origin, me.rank})[0];
  return transpose_to(p, build::reshape(p, all, turned), 0, dim);
}

// What each rank holds of `from` to what it holds of `to`, in one exchange: every rank sends of its
// part of one dim the other ranks' parts of the other dim.
ValueId trade(Program& p, ValueId x, const Cut& from, const Cut& to, const Member& me) {
  const size_t dim = static_cast<size_t>(to.dim);
  const int64_t n = static_cast<int64_t>(to.segments.size()), k = to.segments[0] / me.ranks;
  ValueId wide = build::reshape(p, x, widened(p.type(x).dims, dim, {n, me.ranks, k}));
  ValueId all = exchange(p, "all_to_all", transpose_to(p, wide, dim + 1, 0), {}, me, 0);
  Dims dims = p.type(all).dims;
  dims.erase(dims.begin() + to.dim + 2), dims[dim + 1] = n * k;
  return interleave(p, build::reshape(p, all, dims), static_cast<size_t>(from.dim),
                    static_cast<int64_t>(from.segments.size()), me.ranks);
}

// Summands to shares of the sum; own samples to shares of everyone's.
ValueId scatter(Program& p, ValueId x, const Cut& cut, const Member& me,
                const char* kind = "reduce_scatter") {
  const size_t dim = static_cast<size_t>(cut.dim);
  const int64_t n = static_cast<int64_t>(cut.segments.size()), k = cut.segments[0] / me.ranks;
  Dims dims = p.type(x).dims;
  ValueId wide = build::reshape(p, x, widened(dims, dim, {n, me.ranks, k}));
  ValueId mine = exchange(p, kind, transpose_to(p, wide, dim + 1, 0), {}, me, -1);
  return build::reshape(p, mine, widened(dims, dim, {n * k}));
}

}  // namespace

bool Cut::is_even(int ranks) const {
  return std::all_of(segments.begin(), segments.end(), [&](int64_t n) { return n % ranks == 0; });
}

Type held(const Type& whole, const Cut& cut, const Member& me) {
  Part part;
  if (cut.kind == Cut::parts && me.ranks > 1) part.cut(cut.dim, ranges_of(cut, me));
  return part.type(whole);
}

Part::Ranges ranges_of(const Cut& cut, const Member& me) {
  Part::Ranges ranges;
  int64_t at = 0;
  for (int64_t n : cut.segments) {
    ranges.emplace_back(at + me.begin(n), at + me.end(n));
    at += n;
  }
  return ranges;
}

namespace {

// Whether one all_to_all does it.
bool trades(const Cut& from, const Cut& to, int ranks) {
  return from.kind == Cut::parts && to.kind == Cut::parts && from.dim != to.dim &&
         from.is_even(ranks) && to.is_even(ranks) && equal(from.segments) && equal(to.segments);
}

}  // namespace

double move_cost(const Cut& from, const Cut& to, int ranks) {
  const double share = (ranks - 1.0) / ranks, copy = 1e-6;
  if (from == to) return 0;
  if (from.kind == Cut::dealt || to.kind == Cut::dealt) {
    const Cut& parts = from.kind == Cut::dealt ? to : from;
    const bool even = parts.kind == Cut::parts && parts.is_even(ranks) && equal(parts.segments);
    return even ? share : 2 * kNever;
  }
  if (to.kind == Cut::sum) return from.kind == Cut::whole ? copy : 2 * kNever;
  if (from.kind == Cut::whole) return copy;
  if (from.kind == Cut::owned) return to.kind == Cut::whole ? 1 : 1 + copy;
  if (trades(from, to, ranks)) return share / ranks;
  if (from.kind == Cut::parts) return to.kind == Cut::whole ? share : share + copy;
  bool scattered = to.kind == Cut::parts && to.is_even(ranks) && equal(to.segments);
  return scattered ? share : 2 * share + (to.kind == Cut::parts ? copy : 0);
}

ValueId share(Program& p, ValueId x, const Cut& cut, const Member& from, const Member& to) {
  const size_t dim = static_cast<size_t>(cut.dim);
  auto piece = [&](ValueId segment, int64_t n, int32_t at) {  // of a segment of n in all
    return build::slice(p, segment, at, to.begin(n) - from.begin(n), to.end(n) - from.begin(n));
  };
  const int64_t n = static_cast<int64_t>(cut.segments.size()), each = cut.segments[0];
  if (equal(cut.segments)) {
    Dims dims = p.type(x).dims;
    ValueId wide = build::reshape(p, x, widened(dims, dim, {n, from.end(each) - from.begin(each)}));
    ValueId mine = piece(wide, each, cut.dim + 1);
    return build::reshape(p, mine, widened(dims, dim, {n * (to.end(each) - to.begin(each))}));
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
  return exchange(p, "all_reduce", x, {{"fn", std::string(fn)}}, me, 0);
}

ValueId move(Program& p, ValueId x, const Dims& dims, const Cut& from, const Cut& to,
             const Member& me) {
  if (from == to || me.ranks == 1) return x;
  if (from.kind == Cut::dealt) return scatter(p, x, to, me, "sample_exchange");
  if (to.kind == Cut::dealt) return gather_even(p, x, from, me, "sample_exchange");
  if (from.kind == Cut::sum) {
    bool scattered = to.kind == Cut::parts && to.is_even(me.ranks) && equal(to.segments);
    if (scattered) return scatter(p, x, to, me);
    x = all_reduce(p, x, me);
  } else if (trades(from, to, me.ranks)) {
    return trade(p, x, from, to, me);
  } else if (from.kind == Cut::parts) {
    x = from.is_even(me.ranks) ? gather_even(p, x, from, me) : gather_uneven(p, x, dims, from, me);
  }
  return to.kind == Cut::parts ? share(p, x, to, Member{}, me) : x;
}

}  // namespace orrery
