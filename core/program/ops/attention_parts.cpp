// SPDX-License-Identifier: Apache-2.0
//
// Attention on a part of the heads, or of the queries with all keys and values on every rank
// (Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3.2). Under a causal mask or a
// window the op on a part of the queries says which it is: "first_query" of "queries". When all
// axes are done, the keys behind the last that a part sees under a causal mask are left out, so
// that the part with the others has the op's own mask and window; a window without a causal mask
// becomes a bias.
//
// A part of the heads of queries has the heads of keys and values that it reads. Where these do not
// divide over the ranks, every rank has them all, picks its own, and their gradients are sums over
// the ranks.
#include <algorithm>

#include "base/error.h"
#include "program/attention_inputs.h"
#include "program/build.h"
#include "program/on_parts.h"
#include "program/ops/attention_groups.h"
#include "program/plain_attention.h"

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

// Whether places say which keys a query sees.
bool has_places(const Op& op) { return is_causal(op) || op.attrs.has("window"); }

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

// Whether an operand lies by heads. A bias has its queries in that dim.
bool lies_by_heads(const Op& op, const std::vector<Placement>& in) {
  const auto operands = in.begin() + static_cast<long>(operands_of(op.kind));
  return std::any_of(in.begin(), operands, [](const Placement& c) { return c.is_along(2); });
}

// How inputs and outputs lie on a part of the heads, all of them.
Way part_of_heads(const OnParts& s, const Op& op) {
  auto by_width = [&](ValueId v) {
    const Dims& dims = s.from.type(v).dims;
    return dims.size() == 3 ? Placement::along(2, {dims[2]}) : Placement{};
  };
  Way way{.only = true};
  for (ValueId v : op.in) way.in.push_back(by_width(v));
  for (ValueId v : op.out) way.out.push_back(by_width(v));
  const Placement share = Placement::along(1, {heads_of(op.attrs)});
  (first_key(op) == 2 ? way.in[5] : way.out[1]) = share;  // lse
  add_bias(s, op, 1, share, way);
  return way;
}

std::vector<Way> by_heads(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  if (!lies_by_heads(op, in)) return {};
  check_heads(s, op, heads_of(op.attrs));
  if (kv_heads_of(op.attrs) % s.me.ranks) return {};
  return {part_of_heads(s, op)};
}

std::vector<Way> options(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  if (s.over_batch) return {};
  std::vector<Way> found = by_queries(s, op, in);
  return found.empty() ? by_heads(s, op, in) : found;
}

// Where heads of keys and values do not divide. It depends on the chunks only whether this is so,
// since the order of the sums of their gradients does.
bool by_picked_groups(OnParts& s, const Op& op) {
  std::vector<Placement> in;
  for (ValueId v : op.in) in.push_back(s.at(v));
  if (s.over_batch || !lies_by_heads(op, in) || kv_heads_of(op.attrs) % s.n_parts == 0 ||
      heads_of(op.attrs) % s.n_parts || !by_queries(s, op, in).empty())
    return false;
  on_picked_groups(s, op, part_of_heads(s, op));
  return true;
}

// Which queries a part has, or which heads.
void fit(Op& copy, const Program&, const Way& way, const Member& part) {
  const Placement& first = way.in[0];
  if (first.is_along(1) && has_places(copy)) {
    const int64_t queries = first.segments[0];
    copy.attrs.set("queries", attr_int(copy.attrs, "queries", queries));
    copy.attrs.set("first_query", attr_int(copy.attrs, "first_query", 0) + part.begin(queries));
  }
  if (first.is_along(2)) fit_heads(copy, part, kv_heads_of(copy.attrs) / part.ranks);
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

// Writes the window of a part of the queries, the last of which stands at a key before the last, as
// a bias.
void with_bias(Program& p, Op op, int64_t last) {
  const size_t q = first_key(op) - 1;
  const int64_t queries = p.type(op.in[q]).dims[1], keys = p.type(op.in[q + 1]).dims[1];
  const ValueId seen = seen_by_place(p, queries, keys, false, attr_int(op.attrs, "window", 0),
                                     Operand::number(static_cast<double>(last - queries)));
  set_bias(op, seen_bias(p, seen, bias_of(op), p.type(op.in[q]).dtype));
  op.attrs.erase("window");
  p.append(std::move(op));
}

void settle(Program& p, Op op) {
  const size_t k = first_key(op);
  const int64_t keys = p.type(op.in[k]).dims[1];
  int64_t last = keys;  // behind the place of the part's last query
  if (op.attrs.has("queries"))
    last += attr_int(op.attrs, "first_query", 0) + p.type(op.in[k - 1]).dims[1] -
            attr_int(op.attrs, "queries", 0);
  op.attrs.erase("queries"), op.attrs.erase("first_query");
  if (last == keys)
    p.append(std::move(op));
  else if (is_causal(op))
    without_keys(p, std::move(op), last);
  else
    with_bias(p, std::move(op), last);
}

}  // namespace

extern const PartsRule attention_parts{
    .options = options, .run = by_picked_groups, .fit = fit, .settle = settle};

}  // namespace orrery
