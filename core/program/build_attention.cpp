// SPDX-License-Identifier: Apache-2.0
//
// attention with all that it may be asked for. The op itself knows a causal mask and a bias: other
// masks become a bias of 0 where a key is seen and -inf where it is not, and the heads of keys and
// values are repeated to those of the queries.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "program/build.h"

namespace orrery::build {
namespace {

int64_t extent(const Program& p, ValueId x, size_t dim) {
  const Dims& dims = p.type(x).dims;
  return dim < dims.size() ? dims[dim] : 1;
}

// A mask or a bias as [B or 1, heads or 1, T or 1, S].
ValueId over_scores(Program& p, const char* what, ValueId x, int64_t keys) {
  Dims dims = p.type(x).dims;
  if (dims.size() > 4)
    p.fail_here(fmt::format("attention: the {} has the dims {}, expected no more than [B,H,T,S]",
                            what, to_string(dims)));
  const Value& v = p.value(x);
  if (v.batch() == Batch::sharded && dims.size() - static_cast<size_t>(v.batch_dim()) != 4)
    p.fail_here(fmt::format(
        "attention: the {} {} has its samples in dim {}, expected [B,H,T,S] with them first: give "
        "it all four dims, as x:reshape(B, 1, 1, S)",
        what, to_string(dims), v.batch_dim() + 1));
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  x = reshape(p, x, dims);
  dims[3] = dims[3] == 1 ? keys : dims[3];
  return broadcast(p, x, dims);
}

// [1,1,T,S]: the keys that a window and an offset let the queries see; kNone: all, but for those
// that the op's own causal mask hides.
ValueId seen_by_place(Program& p, int64_t queries, int64_t keys, const AttentionOptions& o) {
  const bool causal = o.causal && o.offset;
  if (!causal && o.window <= 0) return kNone;
  const Operand first = o.offset.value_or(Operand::number(static_cast<double>(keys - queries)));
  const ValueId place = p.pointwise(ORR_FN_ADD, {iota(p, queries, ORR_I64), first});
  const ValueId lag =  // how far a key lies before the query
      p.pointwise(ORR_FN_SUB, {reshape(p, place, {queries, 1}), iota(p, keys, ORR_I64)});
  ValueId seen = kNone;
  auto also = [&](int32_t fn, int64_t limit) {
    const ValueId x = p.pointwise(fn, {lag, Operand::number(static_cast<double>(limit))});
    seen = seen == kNone ? x : p.pointwise(ORR_FN_AND, {seen, x});
  };
  if (causal) also(ORR_FN_GE, 0);
  if (o.window > 0) also(ORR_FN_LT, o.window);
  if (o.window > 0 && !o.causal) also(ORR_FN_GT, -o.window);
  return reshape(p, seen, {1, 1, queries, keys});
}

// What is added to the scores of q and k, in q's dtype; kNone: nothing.
ValueId whole_bias(Program& p, ValueId q, ValueId k, const AttentionOptions& o) {
  const int64_t queries = extent(p, q, 1), keys = extent(p, k, 1);
  ValueId bias = o.bias, seen = seen_by_place(p, queries, keys, o);
  if (bias != kNone) bias = p.cast(over_scores(p, "bias", bias, keys), p.type(q).dtype);
  if (o.mask != kNone) {
    if (p.type(o.mask).dtype != ORR_BOOL)
      p.fail_here("attention: the mask is " + to_string(p.type(o.mask)) +
                  ", expected booleans such as ids:ne(0); numbers that are added are a bias");
    const ValueId mask = over_scores(p, "mask", o.mask, keys);
    seen = seen == kNone ? mask : p.pointwise(ORR_FN_AND, {seen, mask});
  }
  if (seen == kNone) return bias;
  if (bias == kNone) bias = p.constant(0, p.type(q).dtype);
  const Operand hidden = Operand::number(-std::numeric_limits<double>::infinity());
  return p.pointwise(ORR_FN_SELECT, {seen, bias, hidden});
}

// [B,S,kv_heads*d] as [B,S,heads*d]: each head as often as queries have heads for it.
ValueId repeat_heads(Program& p, ValueId x, int64_t kv_heads, int64_t heads) {
  const Dims d = p.type(x).dims;
  const int64_t depth = d[2] / kv_heads, each = heads / kv_heads;
  x = reshape(p, x, {d[0], d[1], kv_heads, 1, depth});
  x = broadcast(p, x, {d[0], d[1], kv_heads, each, depth});
  return reshape(p, x, {d[0], d[1], heads * depth});
}

void check_kv_heads(Program& p, ValueId k, const AttentionOptions& o) {
  const Type& type = p.type(k);
  if (o.kv_heads < 1 || o.heads % o.kv_heads || type.dims.size() != 3 || type.dims[2] % o.kv_heads)
    p.fail_here(fmt::format(
        "attention: kv_heads is {}: it must divide the {} heads, and the last dim of keys and "
        "values, which are {}",
        o.kv_heads, o.heads, to_string(type)));
}

}  // namespace

ValueId attention(Program& p, ValueId q, ValueId k, ValueId v, const AttentionOptions& o) {
  const int64_t heads = std::max<int64_t>(o.heads, 1);
  if (o.kv_heads && o.kv_heads != o.heads)
    for (ValueId* x : {&k, &v}) {
      check_kv_heads(p, *x, o);
      *x = repeat_heads(p, *x, o.kv_heads, o.heads);
    }
  if (o.window < 0)
    p.fail_here(fmt::format("attention: window is {}, expected 1 or more", o.window));
  const double depth = static_cast<double>(extent(p, q, 2)) / static_cast<double>(heads);
  const ValueId bias = whole_bias(p, q, k, o);
  std::vector<ValueId> in = {q, k, v};
  if (bias != kNone) in.push_back(bias);
  Attrs attrs{{"heads", o.heads},
              {"causal", int64_t{o.causal && !o.offset}},
              {"scale", o.scale.value_or(1 / std::sqrt(depth))}};
  if (o.dropout != 0) {
    in.insert(in.end(), {p.seed(), p.step(), p.constant(0, ORR_I64)});
    attrs.set("dropout", o.dropout), attrs.set("rng_id", p.next_rng_id());
  }
  return p.add1("attention", in, attrs);
}

}  // namespace orrery::build
