// SPDX-License-Identifier: Apache-2.0
#include "program/ops/attention_groups.h"

#include <algorithm>

#include "program/attention_inputs.h"
#include "program/build.h"
#include "program/plain_attention.h"

namespace orrery {
namespace {

// The heads of keys from `first` on that a part of the heads of queries reads, in order: how many
// heads of queries read each.
struct Picked {
  int64_t first = 0;
  std::vector<int64_t> readers = {};

  Picked(const Op& op, const Member& part) {
    const int64_t heads = heads_of(op.attrs), each = heads / kv_heads_of(op.attrs);
    const int64_t begin = part.begin(heads), end = part.end(heads);
    first = begin / each;
    for (int64_t h = first; h * each < end; ++h)
      readers.push_back(std::min((h + 1) * each, end) - std::max(h * each, begin));
  }
  int64_t count() const { return static_cast<int64_t>(readers.size()); }
  // Else each is repeated for every reader.
  bool even() const {
    return std::adjacent_find(readers.begin(), readers.end(), std::not_equal_to<>()) ==
           readers.end();
  }
  int64_t heads() const {
    int64_t all = 0;
    for (int64_t n : readers) all += n;
    return even() ? count() : all;
  }
};

// Of keys or values of so many columns a head, those that are picked.
ValueId pick(Program& p, ValueId x, const Picked& which, int64_t depth) {
  x = build::slice(p, x, 2, which.first * depth, (which.first + which.count()) * depth);
  if (which.even()) return x;
  std::vector<ValueId> heads;
  for (int64_t i = 0; i < which.count(); ++i)
    heads.push_back(repeat_groups(p, build::slice(p, x, 2, i * depth, (i + 1) * depth), 2, 1,
                                  which.readers[static_cast<size_t>(i)]));
  return build::concat(p, heads, 2);
}

// The adjoint: of all `kv_heads` what a part adds to their gradient, which is 0 for others.
ValueId put_back(Program& p, ValueId x, const Picked& which, int64_t depth, int64_t kv_heads) {
  std::vector<ValueId> heads;
  int64_t at = 0;
  for (size_t i = 0; i < which.readers.size() && !which.even(); ++i) {
    const int64_t end = at + which.readers[i] * depth;
    heads.push_back(sum_groups(p, build::slice(p, x, 2, at, end), 2, 1, which.readers[i]));
    at = end;
  }
  if (!heads.empty()) x = build::concat(p, heads, 2);
  const int64_t behind = kv_heads - which.first - which.count();
  return build::pad(p, x, 2, which.first * depth, behind * depth, 0);
}

// This chunk's share of v, which lies so.
ValueId chunk_of(OnParts& s, ValueId v, const Placement& how, const Member& part) {
  const ValueId x = s.read(v, how);
  if (how.kind != Placement::split || part.ranks == s.me.ranks) return x;
  const int64_t n = how.segments[0], first = s.me.begin(n);
  return build::slice(s.p, x, how.dim, part.begin(n) - first, part.end(n) - first);
}

}  // namespace

void fit_heads(Op& op, const Member& part, int64_t kv_heads) {
  const int64_t all = heads_of(op.attrs), share = all / part.ranks;
  op.attrs.set("heads", share);
  op.attrs.erase("kv_heads");
  if (kv_heads != share) op.attrs.set("kv_heads", kv_heads);
  if (!op.attrs.has("rng_id")) return;
  op.attrs.set("head_total", attr_int(op.attrs, "head_total", all));
  op.attrs.set("head_lo", attr_int(op.attrs, "head_lo", 0) + part.rank * share);
}

void on_picked_groups(OnParts& s, const Op& op, const Way& way) {
  const size_t k = query_of(op.kind) + 1;
  const bool is_grad = op.kind == "attention_grad";
  const int64_t depth = s.from.type(op.in[k - 1]).dims[2] / heads_of(op.attrs);
  std::vector<std::vector<ValueId>> made(op.out.size());
  for (int c = 0; c < (is_grad ? s.n_chunks : 1); ++c) {
    const Member part = is_grad ? s.chunk(c) : s.me;
    const Picked which(op, part);
    Op copy = op;
    for (size_t i = 0; i < op.in.size(); ++i)
      copy.in[i] = i == k || i == k + 1 ? pick(s.p, s.read(op.in[i], Placement{}), which, depth)
                                        : chunk_of(s, op.in[i], way.in[i], part);
    fit_heads(copy, part, which.heads());
    std::vector<ValueId> out = s.p.add(op.kind, copy.in, copy.attrs);
    for (size_t j = 1; j < 3 && is_grad; ++j)
      out[j] = put_back(s.p, out[j], which, depth, kv_heads_of(op.attrs));
    for (size_t j = 0; j < out.size(); ++j) made[j].push_back(out[j]);
  }
  for (size_t j = 0; j < op.out.size(); ++j)
    if (is_grad && (j == 1 || j == 2))
      s.become_sum(op.out[j], std::move(made[j]));
    else
      s.become(op.out[j],
               made[j].size() == 1 ? made[j][0] : build::concat(s.p, made[j], way.out[j].dim),
               way.out[j]);
}

}  // namespace orrery
