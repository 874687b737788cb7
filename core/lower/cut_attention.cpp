// SPDX-License-Identifier: Apache-2.0
//
// Attention whose queries are cut over ranks, with all keys and values on every rank (Grattafiori
// et al., "The Llama 3 Herd of Models", 2024, section 3.3.2). Under a causal mask the op on a part
// says which it is: "first_query" of "queries". When all axes are done, the keys that no query of
// the part sees are left out, so that the part with the others has the op's own mask.
#include "lower/cut_pass.h"
#include "program/build.h"

namespace orrery {
namespace {

// Inputs before seed, step and base: q, k, v; of the gradient do, q, k, v, o, lse.
size_t first_key(const Op& op) { return op.kind == "attention" ? 1 : 2; }

bool is_causal(const Op& op) { return attr_int(op.attrs, "causal", 0) != 0; }

// The same op and outputs on the keys [0, n); the gradients of the others are 0.
void without_keys(Program& p, Op op, int64_t n) {
  const size_t k = first_key(op);
  const std::vector<ValueId> in = op.in, out = op.out;
  for (size_t i = k; i < k + 2; ++i) op.in[i] = build::slice(p, in[i], 1, 0, n);
  for (size_t j = 1; j < 3 && k == 2; ++j) {
    const Value whole = p.value(out[j]);
    op.out[j] = p.new_value(p.type(op.in[k + j - 1]), whole.role);
    p.mutable_value(op.out[j]).batch = whole.batch;
    p.mutable_value(op.out[j]).batch_dim = whole.batch_dim;
  }
  p.append(op);
  for (size_t j = 1; j < 3 && k == 2; ++j) {
    const ValueId key = in[k + j - 1];
    Op join;
    join.kind = "concat", join.attrs["dim"] = int64_t{1}, join.phase = op.phase;
    join.site = op.site, join.out = {out[j]};
    join.in = {op.out[j], build::zeros_like(p, build::slice(p, key, 1, n, p.type(key).dims[1]))};
    p.append(std::move(join));
  }
}

// Of an op on a part: the keys that its last query sees.
int64_t keys_seen(const Program& p, const Op& op) {
  const size_t k = first_key(op);
  return p.type(op.in[k]).dims[1] - attr_int(op.attrs, "queries", 0) +
         attr_int(op.attrs, "first_query", 0) + p.type(op.in[k - 1]).dims[1];
}

}  // namespace

void leave_out_keys(Program& p) {
  std::vector<Op> ops;
  ops.swap(p.mutable_ops());
  std::vector<OpId> now(ops.size(), kNone);
  const Site site = p.site();
  const Phase phase = p.phase();
  for (size_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    if (op.twin != kNone) op.twin = now[static_cast<size_t>(op.twin)];
    const size_t begin = p.ops().size();
    const int32_t stage = op.stage;
    if (op.attrs.count("queries")) {
      p.set_site(op.site), p.set_phase(op.phase), p.set_twin(op.twin);
      const int64_t n = keys_seen(p, op);
      op.attrs.erase("queries"), op.attrs.erase("first_query");
      if (n < p.type(op.in[first_key(op)]).dims[1])
        without_keys(p, std::move(op), n);
      else
        p.append(std::move(op));
      for (size_t j = begin; j < p.ops().size(); ++j) p.mutable_ops()[j].stage = stage;
      p.set_twin(kNone);
    } else {
      p.append(std::move(op));
    }
    now[i] = static_cast<OpId>(p.ops().size()) - 1;
  }
  p.set_site(site), p.set_phase(phase);
}

// The gradients of keys and values are summands, one of each part.
std::optional<Way> CutPass::by_queries(const Op& op) const {
  if ((op.kind != "attention" && op.kind != "attention_grad") || deals_ || op.attrs.count("rng_id"))
    return std::nullopt;
  const size_t k = first_key(op);
  const Cut& rows = cut(op.in[k - 1]);
  const int64_t queries = attr_int(op.attrs, "queries", from_.type(op.in[k - 1]).dims[1]);
  const bool blind = is_causal(op) && from_.type(op.in[k]).dims[1] < queries;
  if (rows.kind != Cut::parts || rows.dim != 1 || rows.segments.size() != 1 || blind)
    return std::nullopt;
  const Cut lse = Cut::of(2, rows.segments);
  if (k == 1) return Way{{rows, Cut{}, Cut{}}, {rows, lse}};
  return Way{{rows, rows, Cut{}, Cut{}, rows, lse}, {rows, Cut::summand(), Cut::summand()}};
}

// Which queries a part of a causal op has.
void CutPass::tell_queries(const Op& op, const Member& part, Op& copy) const {
  if (op.kind.rfind("attention", 0) != 0 || !is_causal(op)) return;
  const int64_t queries = from_.type(op.in[first_key(op) - 1]).dims[1];
  copy.attrs["queries"] = attr_int(op.attrs, "queries", queries);
  copy.attrs["first_query"] = attr_int(op.attrs, "first_query", 0) + part.begin(queries);
}

}  // namespace orrery
