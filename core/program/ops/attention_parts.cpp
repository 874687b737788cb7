// SPDX-License-Identifier: Apache-2.0
//
// Attention on a part of the heads, or of the queries with all keys and values on every rank
// (Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3.2). Under a causal mask the
// op on a part of the queries says which it is: "first_query" of "queries". When all axes are done,
// the keys that no query of the part sees are left out, so that the part with the others has the
// op's own mask.
#include <algorithm>

#include "base/error.h"
#include "program/build.h"
#include "program/on_parts.h"
#include "program/ops/attention.h"

namespace orrery {
namespace {

size_t first_key(const Op& op) { return query_of(op.kind) + 1; }

// How the bias lies, if there is one, where its dim is `cut` unless it is one for all.
void add_bias(const OnParts& s, const Op& op, size_t dim, const Placement& cut, Way& way) {
  const ValueId bias = bias_of(op);
  if (bias != kNone)
    way.in[operands_of(op.kind)] = s.from.type(bias).dims[dim] == 1 ? Placement{} : cut;
  if (way.out.size() == 4) way.out[3] = cut;
}

bool is_causal(const Op& op) { return attr_int(op.attrs, "causal", 0) != 0; }

// The gradients of keys and values are summands, one of each part.
std::vector<Way> by_queries(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  const size_t k = first_key(op);
  const Placement& rows = in[k - 1];
  const int64_t queries = attr_int(op.attrs, "queries", s.from.type(op.in[k - 1]).dims[1]);
  const bool blind = is_causal(op) && s.from.type(op.in[k]).dims[1] < queries;
  if (op.attrs.has("rng_id") || !rows.is_plain(1) || blind) return {};
  const Placement lse = Placement::along(2, rows.segments), sum = Placement::summand();
  Way way = k == 1 ? Way{{rows, Placement{}, Placement{}}, {rows, lse}, true}
                   : Way{{rows, rows, Placement{}, Placement{}, rows, lse}, {rows, sum, sum}, true};
  way.in.resize(op.in.size()), way.out.resize(op.out.size());
  add_bias(s, op, 2, lse, way);
  return {way};
}

void check_heads(const OnParts& s, const Op& op, int64_t heads) {
  if (heads % s.me.ranks == 0) return;
  std::string legal;
  for (int64_t n = 1; n <= heads; ++n)
    if (heads % n == 0) legal += (legal.empty() ? "" : ", ") + std::to_string(n);
  fail(ORR_INVALID,
       "{}attention: {} heads do not divide over the {} ranks of axis '{}': choose a size of {}",
       op.site.prefix(), heads, s.me.ranks, s.me.axis, legal);
}

std::vector<Way> by_heads(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  // A bias has its queries in this dim.
  const auto operands = in.begin() + static_cast<long>(operands_of(op.kind));
  if (std::none_of(in.begin(), operands, [](const Placement& c) { return c.is_along(2); }))
    return {};
  const int64_t heads = attr_int(op.attrs, "heads", 1);
  check_heads(s, op, heads);
  auto by_width = [&](ValueId v) {
    const Dims& dims = s.from.type(v).dims;
    return dims.size() == 3 ? Placement::along(2, {dims[2]}) : Placement{};
  };
  Way way{.only = true};
  for (ValueId v : op.in) way.in.push_back(by_width(v));
  for (ValueId v : op.out) way.out.push_back(by_width(v));
  const Placement share = Placement::along(1, {heads});
  (first_key(op) == 2 ? way.in[5] : way.out[1]) = share;  // lse
  add_bias(s, op, 1, share, way);
  return {way};
}

std::vector<Way> options(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  if (s.deals) return {};
  std::vector<Way> found = by_queries(s, op, in);
  return found.empty() ? by_heads(s, op, in) : found;
}

// Which queries a part has, or which heads.
void fit(Op& copy, const Program&, const Way& way, const Member& part) {
  const Placement& first = way.in[0];
  if (first.is_along(1) && is_causal(copy)) {
    const int64_t queries = first.segments[0];
    copy.attrs.set("queries", attr_int(copy.attrs, "queries", queries));
    copy.attrs.set("first_query", attr_int(copy.attrs, "first_query", 0) + part.begin(queries));
  }
  if (!first.is_along(2)) return;
  const int64_t all = attr_int(copy.attrs, "heads", 1), share = all / part.ranks;
  copy.attrs.set("heads", share);
  if (!copy.attrs.has("rng_id")) return;
  copy.attrs.set("head_total", attr_int(copy.attrs, "head_total", all));
  copy.attrs.set("head_lo", attr_int(copy.attrs, "head_lo", 0) + part.rank * share);
}

// The same op and outputs on the keys [0, n); the gradients of the others are 0.
void without_keys(Program& p, Op op, int64_t n) {
  const size_t k = first_key(op);
  const std::vector<ValueId> out = op.out;
  for (size_t i = k; i < k + 2; ++i) op.in[i] = build::slice(p, op.in[i], 1, 0, n);
  if (const ValueId bias = bias_of(op); bias != kNone)
    op.in[operands_of(op.kind)] = build::slice(p, bias, 3, 0, n);
  const auto keys_of = [](size_t j) { return size_t{j == 3 ? 3u : 1u}; };  // the dim of an output
  for (size_t j = 1; j < out.size() && k == 2; ++j) {
    const Value whole = p.value(out[j]);
    Type type = whole.type;
    type.dims[keys_of(j)] = n;
    op.out[j] = p.new_value(type, whole.role);
    p.mutable_value(op.out[j]).layout = whole.layout;
  }
  p.append(op);
  for (size_t j = 1; j < out.size() && k == 2; ++j) {
    const Value whole = p.value(out[j]);
    Dims dims = whole.type.dims;
    dims[keys_of(j)] -= n;
    const ValueId zeros = p.constant(0, whole.type.dtype, dims);
    p.mutable_value(zeros).layout = whole.layout;
    Op join;
    join.kind = "concat", join.attrs.set("dim", static_cast<int64_t>(keys_of(j)));
    join.phase = op.phase, join.site = op.site, join.out = {out[j]}, join.in = {op.out[j], zeros};
    p.append(std::move(join));
  }
}

void settle(Program& p, Op op) {
  const size_t k = first_key(op);
  const int64_t keys = p.type(op.in[k]).dims[1];
  int64_t seen = keys;  // by the last query of the part
  if (op.attrs.has("queries"))
    seen += attr_int(op.attrs, "first_query", 0) + p.type(op.in[k - 1]).dims[1] -
            attr_int(op.attrs, "queries", 0);
  op.attrs.erase("queries"), op.attrs.erase("first_query");
  if (seen < keys)
    without_keys(p, std::move(op), seen);
  else
    p.append(std::move(op));
}

}  // namespace

extern const PartsRule attention_parts{.options = options, .fit = fit, .settle = settle};

}  // namespace orrery
