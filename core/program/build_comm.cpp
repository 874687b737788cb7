// SPDX-License-Identifier: Apache-2.0
#include "program/build_comm.h"

#include "base/error.h"
#include "program/axes.h"
#include "program/build.h"

namespace orrery::build {
namespace {

size_t checked_dim(Program& p, const char* what, ValueId x, int64_t dim) {
  const auto rank = static_cast<int64_t>(p.type(x).dims.size());
  const int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank)
    p.fail_here(fmt::format("{}: there is no dim {} in {}", what, dim < 0 ? dim : dim + 1,
                            to_string(p.type(x).dims)));
  return static_cast<size_t>(d);
}

// Throws Error if x does not vary: all ranks have the same value, and nothing is to be exchanged.
void check_varies(Program& p, const char* what, ValueId x, const std::string& axis) {
  const int ranks = p.axis_size(axis);
  for (const std::string& one : factors_of(axis))
    if (!has_axis(p.value(x).varying(), one))
      p.fail_here(fmt::format(
          "{}: this value is the same on all {} ranks of axis '{}': there is nothing to exchange; "
          "x:vary(\"{}\") makes it a value of each rank's own",
          what, ranks, one, one));
}

Attrs over(Program& p, const std::string& axis) {
  Attrs attrs{{"axis", axis}};
  if (!p.origin().empty()) attrs.set("origin", p.origin());
  return attrs;
}

Attrs with(Attrs attrs, const std::string& name, Attr value) {
  attrs.set(name, std::move(value));
  return attrs;
}

// [ranks, .., d, ..] -> [.., ranks * d, ..]
ValueId joined(Program& p, ValueId x, size_t dim) {
  const Dims dims = p.type(x).dims;
  Dims whole(dims.begin() + 1, dims.end());
  whole[dim] *= dims[0];
  return reshape(p, move_dim(p, x, 0, dim), whole);
}

// [.., ranks * d, ..] -> [ranks, .., d, ..]: what each rank gets, one after another.
ValueId by_rank(Program& p, const char* what, ValueId x, size_t dim, const std::string& axis) {
  const Dims dims = p.type(x).dims;
  const int64_t ranks = p.axis_size(axis);
  if (dims[dim] % ranks)
    p.fail_here(fmt::format("{}: dim {} of {} does not divide over the {} ranks of axis '{}'", what,
                            dim + 1, to_string(dims), ranks, axis));
  ValueId parts = reshape(p, x, with_dim(dims, dim, {ranks, dims[dim] / ranks}));
  return move_dim(p, parts, dim, 0);
}

}  // namespace

ValueId vary(Program& p, ValueId x, const std::string& axis) {
  p.axis_size(axis);
  return has_axis(p.value(x).varying(), axis) ? x : p.add1("vary", {x}, {{"axis", axis}});
}

ValueId coordinate(Program& p, const std::string& axis) {
  return p.add1("coordinate", {}, {{"axis", axis}, {"ranks", int64_t{p.axis_size(axis)}}});
}

ValueId all_reduce(Program& p, ValueId x, const std::string& axis, const std::string& fn) {
  check_varies(p, "all_reduce", x, axis);
  const bool mean = fn == "mean";
  if (mean && !is_real(p.type(x).dtype))
    p.fail_here(fmt::format("all_reduce: {} has no mean; cast it to f32", to_string(p.type(x))));
  ValueId y = p.add1("all_reduce", {x}, with(over(p, axis), "fn", mean ? std::string("sum") : fn));
  return mean ? p.pointwise(ORR_FN_MUL, {y, Operand::number(1.0 / p.axis_size(axis))}) : y;
}

static ValueId gather_batch(Program& p, ValueId x, int64_t dim) {
  const Value& v = p.value(x);
  if (v.batch() != Batch::sharded)
    p.fail_here(fmt::format(
        "all_gather: {} has no rows of single samples, of which the batch's could be gathered",
        to_string(v.type)));
  const size_t d = static_cast<size_t>(v.batch_dim());
  if (checked_dim(p, "all_gather", x, dim) != d)
    p.fail_here(fmt::format("all_gather: the samples of {} lie along dim {}, not {}: give dim = {}",
                            to_string(v.type), d + 1, dim + 1, d + 1));
  return move_dim(p, p.add1("batch_gather", {move_dim(p, x, d, 0)}), 0, d);
}

ValueId all_gather(Program& p, ValueId x, const std::string& axis, int64_t dim) {
  if (axis == kBatch) return gather_batch(p, x, dim);
  check_varies(p, "all_gather", x, axis);
  if (p.type(x).dims.empty()) x = reshape(p, x, {1}), dim = 0;
  const size_t d = checked_dim(p, "all_gather", x, dim);
  return joined(
      p, p.add1("all_gather", {x}, with(over(p, axis), "ranks", int64_t{p.axis_size(axis)})), d);
}

ValueId reduce_scatter(Program& p, ValueId x, const std::string& axis, int64_t dim) {
  check_varies(p, "reduce_scatter", x, axis);
  const size_t d = checked_dim(p, "reduce_scatter", x, dim);
  return p.add1("reduce_scatter", {by_rank(p, "reduce_scatter", x, d, axis)}, over(p, axis));
}

ValueId all_to_all(Program& p, ValueId x, const std::string& axis, int64_t split, int64_t concat) {
  check_varies(p, "all_to_all", x, axis);
  const size_t s = checked_dim(p, "all_to_all", x, split),
               c = checked_dim(p, "all_to_all", x, concat);
  ValueId y = p.add1("all_to_all", {by_rank(p, "all_to_all", x, s, axis)}, over(p, axis));
  return joined(p, y, c);
}

ValueId permute(Program& p, ValueId x, const std::string& axis, int64_t hop) {
  const int64_t ranks = p.axis_size(axis);
  Dims to;
  for (int64_t c = 0; c < ranks; ++c) to.push_back(((c + hop) % ranks + ranks) % ranks);
  return permute(p, x, axis, to);
}

ValueId permute(Program& p, ValueId x, const std::string& axis, const Dims& to) {
  check_varies(p, "permute", x, axis);
  const auto ranks = static_cast<size_t>(p.axis_size(axis));
  std::vector<int> taken(ranks);
  bool fits = to.size() == ranks;
  for (int64_t t : to)
    fits = fits && t >= 0 && t < static_cast<int64_t>(ranks) && !taken[static_cast<size_t>(t)]++;
  if (!fits)
    p.fail_here(
        fmt::format("permute: {} is no permutation of the {} ranks of axis '{}': name each "
                    "coordinate from 0 once",
                    to_string(to), ranks, axis));
  return p.add1("permute", {x}, with(over(p, axis), "to", to));
}

ValueId broadcast(Program& p, ValueId x, const std::string& axis, int64_t root) {
  check_varies(p, "broadcast", x, axis);
  if (const int ranks = p.axis_size(axis); root < 0 || root >= ranks)
    p.fail_here(fmt::format("broadcast: root {} is not among the {} ranks of axis '{}'", root,
                            ranks, axis));
  return p.add1("broadcast", {x}, with(over(p, axis), "root", root));
}

}  // namespace orrery::build
