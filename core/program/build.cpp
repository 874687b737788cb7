// SPDX-License-Identifier: Apache-2.0
#include "program/build.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace orrery::build {
namespace {

int64_t axis(Program& p, const char* what, ValueId x, int64_t dim) {
  int64_t rank = static_cast<int64_t>(p.type(x).dims.size());
  int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank)
    p.fail_here(fmt::format("{}: there is no dim {} in {}", what, dim < 0 ? dim : dim + 1,
                            to_string(p.type(x).dims)));
  return d;
}

Dims axes(Program& p, const char* what, ValueId x, Dims dims) {
  if (dims.empty()) {
    dims.resize(p.type(x).dims.size());
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& d : dims) d = axis(p, what, x, d);
  std::sort(dims.begin(), dims.end());
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end())
    p.fail_here(std::string(what) + ": a dim is named twice");
  return dims;
}

ValueId scale(Program& p, ValueId x, double factor) {
  return factor == 1 ? x : p.pointwise(ORR_FN_MUL, {x, Operand::number(factor)});
}

}  // namespace

ValueId total_weight(Program& p, int32_t dtype) {
  ValueId w = p.batch_weight();
  for (const Op& op : p.ops())
    if (op.kind == "reduce" && op.in[0] == w) return p.cast(op.out[0], dtype);
  return p.cast(reduce(p, "sum", w, {}, false), dtype);
}

// If x's batch dim has several rows per sample, each row gets the weight of its sample.
ValueId weight_like(Program& p, ValueId x) {
  ValueId w = p.batch_weight();
  Dims dims(p.type(x).dims.size(), 1);
  const int64_t extent = p.type(x).dims[static_cast<size_t>(p.value(x).batch_dim())];
  dims[static_cast<size_t>(p.value(x).batch_dim())] = extent;
  if (const int64_t rows = extent / p.batch_size(); rows > 1)
    w = broadcast(p, reshape(p, w, {p.batch_size(), 1}), {p.batch_size(), rows});
  w = reshape(p, w, dims);
  return p.cast(w, p.type(x).dtype);
}

ValueId swap_last(Program& p, ValueId x) {
  Dims perm(p.type(x).dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(p, x, perm);
}

ValueId reshape(Program& p, ValueId x, Dims dims) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else
      known *= dims[i];
  }
  int64_t n = p.type(x).elements();
  if (open >= 0 && known > 0 && n % known == 0) dims[static_cast<size_t>(open)] = n / known;
  if (dims == p.type(x).dims) return x;
  return p.add1("reshape", {x}, {{"dims", dims}});
}

ValueId transpose(Program& p, ValueId x, Dims permutation) {
  for (int64_t& d : permutation) d = axis(p, "transpose", x, d);
  return p.add1("transpose", {x}, {{"perm", permutation}});
}

ValueId move_dim(Program& p, ValueId x, size_t from, size_t to) {
  if (from == to) return x;
  Dims order(p.type(x).dims.size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + static_cast<long>(from));
  order.insert(order.begin() + static_cast<long>(to), static_cast<int64_t>(from));
  return transpose(p, x, order);
}

ValueId slice(Program& p, ValueId x, int64_t dim, int64_t begin, int64_t end) {
  dim = axis(p, "slice", x, dim);
  int64_t n = p.type(x).dims[static_cast<size_t>(dim)];
  if (begin < 0 || end > n || begin >= end)
    p.fail_here(fmt::format("slice: positions {} to {} of dim {} of {}", begin + 1, end, dim + 1,
                            to_string(p.type(x).dims)));
  if (begin == 0 && end == n) return x;
  Dims sizes;
  if (begin) sizes.push_back(begin);
  sizes.push_back(end - begin);
  if (end < n) sizes.push_back(n - end);
  return split(p, x, dim, sizes)[begin ? 1 : 0];
}

std::vector<ValueId> split(Program& p, ValueId x, int64_t dim, const Dims& sizes) {
  dim = axis(p, "split", x, dim);
  return p.add("split", {x}, {{"dim", dim}, {"sizes", sizes}});
}

ValueId concat(Program& p, const std::vector<ValueId>& xs, int64_t dim) {
  if (xs.empty()) p.fail_here("concat: needs at least one tensor");
  if (xs.size() == 1) return xs[0];
  return p.add1("concat", xs, {{"dim", axis(p, "concat", xs[0], dim)}});
}

// Adds the op even if the dims are the same already.
static ValueId repeated(Program& p, ValueId x, const Dims& dims) {
  Op op;
  op.kind = "pointwise", op.phase = p.phase(), op.site = p.site(), op.in = {x};
  op.attrs.set("dims", dims);
  op.expr.outputs = {op.expr.push(ORR_FN_INPUT, p.type(x).dtype, 0)};
  const Dims& from = p.type(x).dims;
  bool ok = from.size() <= dims.size();
  for (size_t i = 0; ok && i < from.size(); ++i)
    ok = from[i] == 1 || from[i] == dims[dims.size() - from.size() + i];
  if (!ok) p.fail_here("broadcast: " + to_string(from) + " does not repeat to " + to_string(dims));
  p.append(std::move(op));
  return p.ops().back().out[0];
}

ValueId broadcast(Program& p, ValueId x, const Dims& dims) {
  return p.type(x).dims == dims ? x : repeated(p, x, dims);
}

ValueId broadcast_like(Program& p, ValueId x, ValueId like) {
  if (p.value(like).batch() == Batch::sharded) x = p.completed(x);
  const Value& l = p.value(like);
  if (l.batch() != Batch::sharded || p.value(x).batch() == Batch::sharded)
    return broadcast(p, x, l.type.dims);
  ValueId y = repeated(p, x, p.type(like).dims);
  p.mutable_value(y).set_batch(Batch::sharded, p.value(like).batch_dim());
  return y;
}

ValueId zeros_like(Program& p, ValueId like) {
  return broadcast_like(p, p.constant(0, p.type(like).dtype), like);
}

ValueId batch_first(Program& p, ValueId x) {
  const Value& v = p.value(x);
  if (v.batch() != Batch::sharded || v.batch_dim() == 0) return x;
  Dims permutation{v.batch_dim()};
  for (int64_t d = 0; d < static_cast<int64_t>(v.type.dims.size()); ++d)
    if (d != v.batch_dim()) permutation.push_back(d);
  return transpose(p, x, permutation);
}

// Whether the order of a sum over `dims` would depend on how many samples a rank holds. It would
// not if the batch dim is the outermost of those that are summed. Kernels also sum in another order
// if no inner dim is left.
static bool batch_in_the_way(const Program& p, ValueId x, const Dims& dims) {
  const Value& v = p.value(x);
  bool summed = std::count(dims.begin(), dims.end(), v.batch_dim());
  return v.batch() == Batch::sharded && v.batch_dim() > 0 &&
         (summed || v.batch_dim() > dims.front());
}

// Moves x's batch dim to the front, reduces with `keep`, and moves it back.
static ValueId reduce_batch_first(Program& p, const std::string& fn, ValueId x, Dims dims) {
  int64_t batch = p.value(x).batch_dim(), rank = static_cast<int64_t>(p.type(x).dims.size());
  for (int64_t& d : dims) d = d == batch ? 0 : d + (d < batch);
  Dims back;
  for (int64_t d = 0; d < rank; ++d) back.push_back(d == batch ? 0 : d + (d < batch));
  return transpose(p, reduce(p, fn, batch_first(p, x), dims, true), back);
}

static Dims dropped(const Dims& from, const Dims& dims) {
  Dims kept;
  for (size_t d = 0; d < from.size(); ++d)
    if (!std::count(dims.begin(), dims.end(), static_cast<int64_t>(d))) kept.push_back(from[d]);
  return kept;
}

ValueId reduce(Program& p, const std::string& fn, ValueId x, Dims dims, bool keep) {
  if (p.type(x).dims.empty()) return fn == "sumsq" ? p.pointwise(ORR_FN_MUL, {x, x}) : x;
  dims = axes(p, fn.c_str(), x, std::move(dims));
  const int32_t dtype = p.type(x).dtype;
  if (dtype == ORR_BOOL || dtype == ORR_U8 || (dtype == ORR_I32 && fn == "sum"))
    x = p.cast(x, ORR_I64);
  Dims kept = p.type(x).dims;
  for (int64_t d : dims) {
    if (kept[static_cast<size_t>(d)] == 0 && (fn == "max" || fn == "min"))
      p.fail_here(fmt::format("{}: there is none in {}", fn, to_string(p.type(x))));
    kept[static_cast<size_t>(d)] = 1;
  }
  if (batch_in_the_way(p, x, dims)) {
    ValueId y = reduce_batch_first(p, fn, x, dims);
    return keep ? y : reshape(p, y, dropped(p.type(y).dims, dims));
  }
  std::string each = fn;
  for (size_t i = dims.size(); i > 0;) {  // a reduce for each run of neighbouring dims, last first
    size_t end = i--;
    while (i > 0 && dims[i - 1] + 1 == dims[i]) --i;
    x = p.add1("reduce", {x}, {{"fn", each}, {"begin", dims[i]}, {"end", dims[end - 1] + 1}});
    if (fn == "sumsq") each = "sum";
  }
  return keep ? reshape(p, x, kept) : x;
}

ValueId mean(Program& p, ValueId x, Dims dims, bool keep) {
  if (const int32_t dtype = p.type(x).dtype; orr_dtype_bytes(dtype) == 2)  // which hold no sum
    return p.cast(mean(p, p.cast(x, ORR_F32), std::move(dims), keep), dtype);
  if (!is_real(p.type(x).dtype)) x = p.cast(x, ORR_F32);
  if (p.type(x).dims.empty()) return x;
  dims = axes(p, "mean", x, std::move(dims));
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(p.type(x).dims[static_cast<size_t>(d)]);
  const Value& v = p.value(x);
  bool over_batch = v.batch() == Batch::sharded &&
                    std::count(dims.begin(), dims.end(), static_cast<int64_t>(v.batch_dim()));
  if (!over_batch) return scale(p, reduce(p, "sum", x, dims, keep), 1 / n);
  if (v.type.dims[static_cast<size_t>(v.batch_dim())] != p.batch_size()) {
    // The batch dim has several rows per sample: split it, so that samples have their own dim.
    Dims split_dims = v.type.dims;
    auto at = split_dims.begin() + v.batch_dim();
    int64_t rows = *at / p.batch_size();
    *at = rows;
    split_dims.insert(split_dims.begin() + v.batch_dim(), p.batch_size());
    Dims wider;
    int64_t batch = v.batch_dim();
    for (int64_t d : dims) {
      wider.push_back(d > batch ? d + 1 : d);
      if (d == batch) wider.push_back(d + 1);
    }
    return mean(p, reshape(p, x, split_dims), wider, false);
  }
  ValueId weighted = p.pointwise(ORR_FN_MUL, {x, weight_like(p, x)});
  double per_sample = n / static_cast<double>(p.batch_size());
  ValueId sum = scale(p, reduce(p, "sum", weighted, dims, keep), 1 / per_sample);
  ValueId weight = total_weight(p, p.type(sum).dtype);
  if (p.type(sum).dims != p.type(weight).dims) weight = broadcast(p, weight, p.type(sum).dims);
  return p.add1("batch_mean", {sum, weight});
}

std::pair<ValueId, ValueId> microbatch_mean(Program& p, ValueId x) {
  if (const int32_t dtype = p.type(x).dtype; orr_dtype_bytes(dtype) == 2) {
    const auto [mean, count] = microbatch_mean(p, p.cast(x, ORR_F32));
    return {p.cast(mean, dtype), p.cast(count, dtype)};
  }
  if (!is_real(p.type(x).dtype)) x = p.cast(x, ORR_F32);
  axis(p, "microbatch_mean", x, 0);
  const Type type = p.type(x);
  if (p.value(x).batch() != Batch::sharded) {
    const ValueId rows = p.constant(static_cast<double>(type.dims[0]), type.dtype,
                                    with_dim(Dims(type.dims.size(), 1), 0, {type.dims[0]}));
    return {broadcast(p, mean(p, x, {0}, true), type.dims), rows};
  }
  const ValueId weight = weight_like(p, x);
  const ValueId sum = p.add1("microbatch_sum", {p.pointwise(ORR_FN_MUL, {x, weight})});
  const ValueId count = p.add1("microbatch_sum", {weight});
  const ValueId least = p.pointwise(ORR_FN_MAX, {count, Operand::number(1)});  // 0: all fill up
  return {p.pointwise(ORR_FN_DIV, {sum, least}), count};
}

ValueId softmax(Program& p, ValueId x) { return p.add1("softmax", {x}); }

ValueId layernorm(Program& p, ValueId x, ValueId w, ValueId b, double eps) {
  return p.add1("layernorm", {x, w, b}, {{"eps", eps}});
}

ValueId rmsnorm(Program& p, ValueId x, ValueId w, double eps) {
  return p.add1("rmsnorm", {x, w}, {{"eps", eps}});
}

ValueId cross_entropy(Program& p, ValueId logits, ValueId labels, ValueId weights,
                      std::optional<int64_t> ignore) {
  int32_t dtype = p.type(logits).dtype == ORR_F64 ? ORR_F64 : ORR_F32;
  const Dims rows = p.type(labels).dims;
  ValueId token = weights == kNone ? kNone : p.cast(weights, dtype);
  if (ignore) {
    ValueId kept = p.cast(
        p.pointwise(ORR_FN_NE, {labels, Operand::number(static_cast<double>(*ignore))}), dtype);
    token = token == kNone ? kept : p.pointwise(ORR_FN_MUL, {token, kept});
  }
  bool batch = p.value(labels).batch() == Batch::sharded;
  ValueId each = batch ? p.cast(weight_like(p, labels), dtype) : p.constant(1, dtype);
  ValueId w = broadcast(p, token == kNone ? each : p.pointwise(ORR_FN_MUL, {token, each}), rows);
  ValueId loss = p.add("cross_entropy", {logits, labels, w})[0];
  double n = static_cast<double>(p.type(labels).elements());
  if (!batch && token == kNone) return scale(p, reduce(p, "sum", loss, {}, false), 1 / n);
  ValueId sum = reduce(p, "sum", loss, {}, false);
  if (token != kNone) {
    ValueId total = reduce(p, "sum", w, {}, false);
    return batch ? p.add1("batch_mean", {sum, total}) : p.pointwise(ORR_FN_DIV, {sum, total});
  }
  sum = scale(p, sum, static_cast<double>(p.batch_size()) / n);
  return p.add1("batch_mean", {sum, total_weight(p, dtype)});
}

ValueId dropout(Program& p, ValueId x, double rate) {
  if (rate < 0 || rate >= 1) p.fail_here(fmt::format("dropout: rate {} is not in [0, 1)", rate));
  if (rate == 0) return x;
  Type mask{ORR_F32, p.type(x).dims};
  ValueId keep = p.pointwise(ORR_FN_GE, {p.random_uniform(mask, x), Operand::number(rate)});
  ValueId kept = p.pointwise(ORR_FN_SELECT, {keep, x, Operand::number(0)});
  return scale(p, kept, 1 / (1 - rate));
}

ValueId tree(Program& p, std::vector<ValueId> level, int32_t fn) {
  while (level.size() > 1) {
    std::vector<ValueId> above;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      above.push_back(p.pointwise(fn, {level[i], level[i + 1]}));
    if (level.size() % 2) above.push_back(level.back());
    level = std::move(above);
  }
  return level[0];
}

ValueId slice_at(Program& p, ValueId x, int64_t dim, ValueId at, int64_t size) {
  return p.add1("slice_at", {x, p.cast(at, ORR_I64)},
                {{"dim", axis(p, "slice_at", x, dim)}, {"size", size}});
}

ValueId update_slice(Program& p, ValueId x, ValueId u, int64_t dim, ValueId at) {
  return p.add1("update_slice", {x, u, p.cast(at, ORR_I64)},
                {{"dim", axis(p, "update_slice", x, dim)}});
}

ValueId stop_gradient(Program& p, ValueId x) { return p.add1("stop_gradient", {x}); }

}  // namespace orrery::build
