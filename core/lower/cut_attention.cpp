// SPDX-License-Identifier: Apache-2.0
//
// Attention whose queries are cut over ranks, with all keys and values on every rank (Grattafiori et
// al., "The Llama 3 Herd of Models", 2024, section 3.3.2). Under a causal mask the last query of a
// part sees the keys up to its own place, so that the part alone, with these keys, has the op's
// mask; the gradients of keys and values are summands, one of each part.
#include "lower/cut_pass.h"
#include "program/build.h"

namespace orrery {
namespace {

// Inputs before seed, step and base: q, k, v; of the gradient do, q, k, v, o, lse.
size_t first_key(const Op& op) { return op.kind == "attention" ? 1 : 2; }

}  // namespace

bool CutPass::attention(const Op& op) {
  if ((op.kind != "attention" && op.kind != "attention_grad") || op.attrs.count("rng_id"))
    return false;
  const size_t k = first_key(op);
  const Cut& rows = cut(op.in[k - 1]);
  const int64_t queries = from_.type(op.in[k - 1]).dims[1], keys = from_.type(op.in[k]).dims[1];
  const bool blind = attr_int(op.attrs, "causal", 0) && keys < queries;  // the first see no key
  if (rows.kind != Cut::parts || rows.dim != 1 || rows.segments.size() != 1 || blind) return false;
  if (k == 1)
    attend(op, rows);
  else
    attend_grad(op, rows);
  return true;
}

// The keys that the last query of a part sees.
int64_t CutPass::keys_seen(const Op& op, const Member& part) const {
  const size_t k = first_key(op);
  const int64_t queries = from_.type(op.in[k - 1]).dims[1], keys = from_.type(op.in[k]).dims[1];
  return attr_int(op.attrs, "causal", 0) ? keys - queries + part.end(queries) : keys;
}

ValueId CutPass::seen_keys(const Op& op, ValueId v, const Member& part) {
  const int64_t n = keys_seen(op, part);
  const ValueId all = read(v, Cut{});
  return n == from_.type(v).dims[1] ? all : build::slice(to_, all, 1, 0, n);
}

// What the op on one part of the queries reads.
std::vector<ValueId> CutPass::attention_inputs(const Op& op, const Cut& rows, const Member& part) {
  const size_t k = first_key(op);
  std::vector<ValueId> in;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const bool key = i == k || i == k + 1, lse = i == 5;
    if (key) {
      in.push_back(seen_keys(op, op.in[i], part));
      continue;
    }
    const Cut mine = lse ? Cut::of(2, rows.segments) : rows;
    const ValueId x = read(op.in[i], mine);
    in.push_back(part.ranks == me_.ranks ? x : share(to_, x, mine, me_, part));
  }
  return in;
}

void CutPass::attend(const Op& op, const Cut& rows) {
  const std::vector<ValueId> out = to_.add("attention", attention_inputs(op, rows, me_), op.attrs);
  become(op.out[0], out[0], rows);
  become(op.out[1], out[1], Cut::of(2, rows.segments));
}

void CutPass::attend_grad(const Op& op, const Cut& rows) {
  std::vector<ValueId> dq, dk, dv;
  for (int i = 0; i < chunks_; ++i) {
    const Member part = chunks_ == 1 ? me_ : chunk(i);
    const std::vector<ValueId> d =
        to_.add("attention_grad", attention_inputs(op, rows, part), op.attrs);
    const int64_t seen = keys_seen(op, part), keys = from_.type(op.in[2]).dims[1];
    // Keys that no query of the part sees have no gradient.
    auto all_keys = [&](ValueId dx, ValueId x) {
      if (seen == keys) return dx;
      const ValueId unseen = build::slice(to_, read(x, Cut{}), 1, seen, keys);
      return build::concat(to_, {dx, build::zeros_like(to_, unseen)}, 1);
    };
    dq.push_back(d[0]);
    dk.push_back(all_keys(d[1], op.in[2])), dv.push_back(all_keys(d[2], op.in[3]));
  }
  become(op.out[0], dq.size() == 1 ? dq[0] : build::concat(to_, dq, 1), rows);
  become_sum(op.out[1], std::move(dk));
  become_sum(op.out[2], std::move(dv));
}

}  // namespace orrery
