// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/batch_rows.h"

#include <algorithm>
#include <numeric>

#include "program/axes.h"
#include "program/build.h"
#include "program/op.h"
#include "program/rewrite.h"

namespace orrery {
ValueId of_samples(Program& p, ValueId v, int32_t batch_dim) {
  p.mutable_value(v).set_batch(Batch::sharded, batch_dim);
  return v;
}

int64_t BatchRows::in_microbatches(int64_t first, int64_t last) const {
  return std::min(last * microbatches.rows, batch) - std::min(first * microbatches.rows, batch);
}

ValueId add_reshape(Program& p, ValueId x, const Dims& dims) {
  return append_op(p, "reshape", {{"dims", dims}}, {x}, {p.type(x).dtype, dims});
}

ValueId add_part(Program& p, ValueId flat, int64_t begin, int64_t n) {
  const Type type = p.type(flat);
  if (n == type.elements()) return flat;
  Op op;
  Dims sizes;
  ValueId found = kNone;
  for (int64_t size : {begin, n, type.elements() - begin - n}) {
    if (sizes.push_back(size); size == 0) continue;
    op.out.push_back(p.new_value({type.dtype, {size}}, Role::activation));
    if (sizes.size() == 2) found = op.out.back();
  }
  sizes.erase(std::remove(sizes.begin(), sizes.end(), 0), sizes.end());
  op.kind = "split", op.in = {flat}, op.phase = p.phase(), op.site = p.site();
  op.attrs = {{"dim", int64_t{0}}, {"sizes", sizes}};
  p.append(std::move(op));
  return found;
}

ValueId add_batch_gather(Program& p, const BatchRows& samples, ValueId x, const Type& whole) {
  const int64_t width = whole.elements() / samples.batch, n = samples.here() * width;
  std::vector<ValueId> own;  // empty if the rank has only rows that pad
  if (n) own = {add_part(p, add_reshape(p, x, {p.type(x).elements()}), 0, n)};
  const std::string& axis = samples.mesh.batch_axis;
  if (samples.mesh.size_of(axis) == 1) return add_reshape(p, own[0], whole.dims);
  Dims counts;
  for (size_t r = 0; r + 1 < samples.first_microbatch.size(); ++r)
    counts.push_back(
        samples.in_microbatches(samples.first_microbatch[r], samples.first_microbatch[r + 1]) *
        width);
  const Attrs attrs = {{"axis", axis}, {"counts", counts}, {"origin", samples.mesh.maker_of(axis)}};
  const ValueId rows = append_op(p, "all_gather", attrs, own, {whole.dtype, {whole.elements()}});
  return add_reshape(p, rows, whole.dims);
}

ValueId add_batch_slice(Program& p, const BatchRows& samples, ValueId y, const Type& own) {
  const int64_t width = p.type(y).elements() / samples.batch, n = samples.here() * width;
  std::vector<ValueId> parts;
  if (n) {
    const ValueId all = add_reshape(p, y, {p.type(y).elements()});
    parts.push_back(add_part(p, all, samples.microbatches.first_row() * width, n));
  }
  if (n < own.elements()) parts.push_back(p.constant(0, own.dtype, {own.elements() - n}));
  if (parts.size() > 1)
    parts = {append_op(p, "concat", {{"dim", int64_t{0}}}, parts, {own.dtype, {own.elements()}})};
  return of_samples(p, add_reshape(p, parts[0], own.dims));
}

static ValueId repeated(Program& p, ValueId x, const Dims& dims) {
  Op op;
  op.kind = "pointwise", op.in = {x}, op.attrs.set("dims", dims);
  op.expr.outputs = {op.expr.push(ORR_FN_INPUT, p.type(x).dtype, 0)};
  return of_samples(p, append_op(p, std::move(op), {p.type(x).dtype, dims}));
}

// For each row of x the sum of all, or the largest, in the dims of x, so that ops before and behind
// join it.
static ValueId add_sum_of_rows(Program& p, ValueId x, const std::string& fn) {
  const Type type = p.type(x);
  Dims one = type.dims, rest(type.dims.begin() + 1, type.dims.end());
  one[0] = 1;
  const Attrs sum = {{"fn", fn}, {"begin", int64_t{0}}, {"end", int64_t{1}}};
  const ValueId y = of_samples(p, append_op(p, "reduce", sum, {x}, {type.dtype, rest}));
  return repeated(p, of_samples(p, add_reshape(p, y, one)), type.dims);
}

ValueId add_microbatch_sum(Program& p, ValueId x, int64_t microbatches, const std::string& fn) {
  const Type type = p.type(x);
  const Dims grouped = {microbatches, type.dims[0] / microbatches,
                        type.elements() / std::max<int64_t>(type.dims[0], 1)};
  if (microbatches == 1 && type.dims.size() > 1) return add_sum_of_rows(p, x, fn);
  const Dims one = {grouped[0], 1, grouped[2]};
  const Attrs sum = {{"fn", fn}, {"begin", int64_t{1}}, {"end", int64_t{2}}};
  ValueId y = of_samples(p, add_reshape(p, x, grouped));
  y = of_samples(p, append_op(p, "reduce", sum, {y}, {type.dtype, {grouped[0], grouped[2]}}));
  y = repeated(p, of_samples(p, add_reshape(p, y, one)), grouped);
  return of_samples(p, add_reshape(p, y, type.dims));
}

ValueId add_sample_index(Program& p, const BatchRows& samples, int64_t rows, ValueId first) {
  Op op;
  op.kind = "pointwise", op.in = {build::iota(p, rows, ORR_I64)};
  auto number = [&](int64_t n) {
    return op.expr.push(ORR_FN_CONST, ORR_I64, -1, -1, -1, static_cast<double>(n));
  };
  const int32_t in_call = op.expr.push(ORR_FN_INPUT, ORR_I64, 0);
  const int32_t before = first == kNone ? number(samples.microbatches.first_row())
                                        : op.expr.push(ORR_FN_INPUT, ORR_I64, 1);
  if (first != kNone) op.in.push_back(first);
  const int32_t at = op.expr.push(ORR_FN_ADD, ORR_I64, in_call, before);
  op.expr.outputs = {op.expr.push(ORR_FN_MIN, ORR_I64, at, number(samples.batch - 1))};
  return of_samples(p, append_op(p, std::move(op), {ORR_I64, {rows}}));
}

std::vector<char> find_gathered(const Program& p, const std::string& axis) {
  const auto lies_over_axis = [&](ValueId v) {
    const auto& all = p.value(v).layout.placements();
    return std::any_of(all.begin(), all.end(),
                       [&](const Layout::On& on) { return has_axis(axis, on.first); });
  };
  std::vector<char> found(p.values().size());
  for (const Op& op : p.ops()) {
    bool all = op.kind == "recv" && !axis.empty() && lies_over_axis(op.out[0]);
    for (ValueId v : op.in) all = all || found[static_cast<size_t>(v)];
    if (op.kind == "sample_exchange") all = !all;
    for (ValueId v : op.out)
      found[static_cast<size_t>(v)] = all && p.value(v).batch() == Batch::sharded;
  }
  return found;
}

ValueId add_sample_exchange(Program& p, const Op& op, ValueId x, const Dims& together,
                            int32_t batch_dim) {
  const int64_t ranks = attr_int(op.attrs, "ranks", p.type(x).dims[0]);
  const auto dim = static_cast<size_t>(batch_dim);
  Dims by_rank = together, front, perm(together.size() + 1);
  by_rank[dim] /= ranks;
  (front = by_rank).insert(front.begin(), ranks);
  by_rank.insert(by_rank.begin() + batch_dim, ranks);  // [.., ranks, samples, ..]
  std::iota(perm.begin(), perm.end(), 0);
  auto add = [&](const char* kind, const Attrs& attrs, const Dims& dims, int32_t at) {
    x = of_samples(p, append_op(p, kind, attrs, {x}, {p.type(x).dtype, dims}), at);
  };
  Attrs attrs = op.attrs;
  attrs.erase("ranks");
  if (op.attrs.has("ranks")) {
    std::rotate(perm.begin(), perm.begin() + batch_dim, perm.begin() + batch_dim + 1);
    add("reshape", {{"dims", by_rank}}, by_rank, batch_dim + 1);
    add("transpose", {{"perm", perm}}, front, batch_dim + 1);
    add("all_to_all", attrs, front, batch_dim + 1);
  } else {
    std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + batch_dim + 1);
    add("all_to_all", attrs, front, batch_dim + 1);
    add("transpose", {{"perm", perm}}, by_rank, batch_dim + 1);
    add("reshape", {{"dims", together}}, together, batch_dim);
  }
  return x;
}

std::vector<ValueId> split_samples(Program& p, ValueId x, int32_t batch_dim, int ranks) {
  Type type = p.type(x);
  const int64_t each = type.dims[static_cast<size_t>(batch_dim)] / ranks;
  type.dims[static_cast<size_t>(batch_dim)] = each;
  Op split;
  split.kind = "split", split.in = {x}, split.phase = p.phase(), split.site = p.site();
  split.attrs = {{"dim", int64_t{batch_dim}}, {"sizes", Dims(static_cast<size_t>(ranks), each)}};
  for (int r = 0; r < ranks; ++r)
    split.out.push_back(of_samples(p, p.new_value(type, Role::activation), batch_dim));
  const std::vector<ValueId> parts = split.out;
  p.append(std::move(split));
  return parts;
}

size_t weighed_input(const Program& p, const Op& op) {
  if (op.kind == "norm_param_grad") return 0;
  const auto has_samples = [&](size_t i) { return p.value(op.in[i]).batch() == Batch::sharded; };
  for (size_t i = op.in.size(); i-- > 0;)
    if (has_samples(i) && is_real(p.type(op.in[i]).dtype)) return i;
  size_t last = op.in.size() - 1;
  while (!has_samples(last)) --last;
  return last;
}

ValueId add_weighed(Program& p, ValueId x, int32_t batch_dim, int64_t rows, ValueId weights) {
  const Type type = p.type(x);
  const size_t dim = static_cast<size_t>(batch_dim);
  const int64_t per_sample = type.dims[dim] / rows;
  Dims shape(type.dims.size(), 1);
  shape[dim] = type.dims[dim];
  if (per_sample > 1)
    weights = repeated(p, of_samples(p, add_reshape(p, weights, {rows, 1})), {rows, per_sample});
  const ValueId w = of_samples(p, add_reshape(p, weights, shape), batch_dim);
  Op times;
  times.kind = "pointwise", times.in = {x, w};
  int32_t a = times.expr.push(ORR_FN_INPUT, type.dtype, 0),
          b = times.expr.push(ORR_FN_INPUT, ORR_F32, 1);
  if (type.dtype != ORR_F32) b = times.expr.push(ORR_FN_CAST, type.dtype, b);
  times.expr.outputs = {times.expr.push(ORR_FN_MUL, type.dtype, a, b)};
  return of_samples(p, append_op(p, std::move(times), type), batch_dim);
}

}  // namespace orrery
