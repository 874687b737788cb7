// SPDX-License-Identifier: Apache-2.0
//
// attention with all that it may be asked for. The op itself knows groups of heads, a causal mask,
// a window and a bias: other masks, and both of these where queries stand at an offset, become a
// bias of 0 where a key is seen and -inf where it is not.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "program/build.h"
#include "program/plain_attention.h"

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

// Which keys queries see by their places, where that is no matter of the op's own attributes.
ValueId seen_from_offset(Program& p, int64_t queries, int64_t keys, const AttentionOptions& o) {
  if (!o.offset || (!o.causal && o.window <= 0)) return kNone;
  return seen_by_place(p, queries, keys, o.causal, o.window, *o.offset);
}

// What is added to the scores of q and k, in q's dtype; kNone: nothing.
ValueId whole_bias(Program& p, ValueId q, ValueId k, const AttentionOptions& o) {
  const int64_t queries = extent(p, q, 1), keys = extent(p, k, 1);
  ValueId bias = o.bias, seen = seen_from_offset(p, queries, keys, o);
  if (bias != kNone) bias = p.cast(over_scores(p, "bias", bias, keys), p.type(q).dtype);
  if (o.mask != kNone) {
    if (p.type(o.mask).dtype != ORR_BOOL)
      p.fail_here("attention: the mask is " + to_string(p.type(o.mask)) +
                  ", expected booleans such as ids:ne(0); numbers that are added are a bias");
    const ValueId mask = over_scores(p, "mask", o.mask, keys);
    seen = seen == kNone ? mask : p.pointwise(ORR_FN_AND, {seen, mask});
  }
  return seen == kNone ? bias : seen_bias(p, seen, bias, p.type(q).dtype);
}

// The window if it hides a key from a query, else 0.
int64_t narrow_window(Program& p, ValueId q, ValueId k, const AttentionOptions& o) {
  const int64_t queries = extent(p, q, 1), keys = extent(p, k, 1);
  return o.offset || o.window >= (o.causal ? keys : std::max(queries, keys)) ? 0 : o.window;
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
  const bool grouped = o.kv_heads && o.kv_heads != o.heads;
  if (grouped) check_kv_heads(p, k, o);
  if (o.window < 0)
    p.fail_here(fmt::format("attention: window is {}, expected 1 or more", o.window));
  const double depth = static_cast<double>(extent(p, q, 2)) / static_cast<double>(heads);
  const ValueId bias = whole_bias(p, q, k, o);
  std::vector<ValueId> in = {q, k, v};
  if (bias != kNone) in.push_back(bias);
  Attrs attrs{{"heads", o.heads},
              {"causal", int64_t{o.causal && !o.offset}},
              {"scale", o.scale.value_or(1 / std::sqrt(depth))}};
  if (grouped) attrs.set("kv_heads", o.kv_heads);
  if (const int64_t window = narrow_window(p, q, k, o); window > 0) attrs.set("window", window);
  if (o.dropout != 0) {
    in.insert(in.end(), {p.seed(), p.step(), p.constant(0, ORR_I64)});
    attrs.set("dropout", o.dropout), attrs.set("rng_id", p.next_rng_id());
  }
  return p.add1("attention", in, attrs);
}

}  // namespace orrery::build
