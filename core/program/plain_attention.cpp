// SPDX-License-Identifier: Apache-2.0
#include "program/plain_attention.h"

#include <limits>

#include "program/attention_inputs.h"
#include "program/build.h"

namespace orrery {
namespace {

// The dims of x with this one as [groups, times, the rest].
Dims with_dim_split(const Program& p, ValueId x, size_t dim, int64_t groups, int64_t times) {
  Dims dims = p.type(x).dims;
  const int64_t rest = dims[dim] / groups / times;
  dims[dim] = rest;
  dims.insert(dims.begin() + static_cast<long>(dim), {groups, times});
  return dims;
}

}  // namespace

ValueId seen_by_place(Program& p, int64_t queries, int64_t keys, bool causal, int64_t window,
                      const Operand& first) {
  const ValueId place = p.pointwise(ORR_FN_ADD, {build::iota(p, queries, ORR_I64), first});
  const ValueId lag =  // how far a key lies before the query
      p.pointwise(ORR_FN_SUB,
                  {build::reshape(p, place, {queries, 1}), build::iota(p, keys, ORR_I64)});
  ValueId seen = kNone;
  auto also = [&](int32_t fn, int64_t limit) {
    const ValueId x = p.pointwise(fn, {lag, Operand::number(static_cast<double>(limit))});
    seen = seen == kNone ? x : p.pointwise(ORR_FN_AND, {seen, x});
  };
  if (causal) also(ORR_FN_GE, 0);
  if (window > 0) also(ORR_FN_LT, window);
  if (window > 0 && !causal) also(ORR_FN_GT, -window);
  return build::reshape(p, seen, {1, 1, queries, keys});
}

ValueId seen_bias(Program& p, ValueId seen, ValueId bias, int32_t dtype) {
  if (bias == kNone) bias = p.constant(0, dtype);
  const Operand hidden = Operand::number(-std::numeric_limits<double>::infinity());
  return p.pointwise(ORR_FN_SELECT, {seen, bias, hidden});
}

ValueId repeat_groups(Program& p, ValueId x, size_t dim, int64_t groups, int64_t times) {
  if (times == 1) return x;
  Dims whole = p.type(x).dims, dims = with_dim_split(p, x, dim, groups, 1);
  x = build::reshape(p, x, dims);
  dims[dim + 1] = times, whole[dim] *= times;
  return build::reshape(p, build::broadcast(p, x, dims), whole);
}

ValueId sum_groups(Program& p, ValueId x, size_t dim, int64_t groups, int64_t times) {
  if (times == 1) return x;
  Dims whole = p.type(x).dims;
  whole[dim] /= times;
  x = build::reshape(p, x, with_dim_split(p, x, dim, groups, times));
  x = build::reduce(p, "sum", x, {static_cast<int64_t>(dim) + 1}, false);
  return build::reshape(p, x, whole);
}

std::vector<ValueId> plain_attention(Program& p, Op op, bool heads, bool window) {
  const size_t q = query_of(op.kind);
  const int64_t groups = kv_heads_of(op.attrs), times = heads_of(op.attrs) / groups;
  if (window) {
    const int64_t queries = p.type(op.in[q]).dims[1], keys = p.type(op.in[q + 1]).dims[1];
    const ValueId seen = seen_by_place(p, queries, keys, attr_int(op.attrs, "causal", 0) != 0,
                                       attr_int(op.attrs, "window", 0),
                                       Operand::number(static_cast<double>(keys - queries)));
    set_bias(op, seen_bias(p, seen, bias_of(op), p.type(op.in[q]).dtype));
    op.attrs.erase("window");
  }
  if (!heads) return p.add(op.kind, op.in, op.attrs);
  op.attrs.erase("kv_heads");
  for (size_t i = q + 1; i < q + 3; ++i) op.in[i] = repeat_groups(p, op.in[i], 2, groups, times);
  std::vector<ValueId> out = p.add(op.kind, op.in, op.attrs);
  for (size_t j = 1; j < 3 && op.kind == "attention_grad"; ++j)
    out[j] = sum_groups(p, out[j], 2, groups, times);
  return out;
}

}  // namespace orrery
