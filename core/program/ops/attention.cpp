// SPDX-License-Identifier: Apache-2.0
//
// attention: q[B,T,heads*D], k[B,S,heads*D], v[B,S,heads*D] -> o[B,T,heads*D], lse[B,heads,T]; the
// T x S matrix is never stored. With real "dropout" and int "rng_id" seed, step and base follow the
// operands. Kernels see [B,H,T,D] with strides (orrery/ops.h).
#include <stdexcept>
#include <string_view>

#include "program/op.h"
#include "program/wanted.h"

namespace orrery {
namespace {

int64_t heads_of(const Attrs& attrs) { return attr_int(attrs, "heads", 1); }
// What comes before seed, step and base.
size_t operands_of(std::string_view kind) { return kind == "attention" ? 3 : 6; }

std::vector<Type> infer(const OpArgs& args) {
  const Type &q = args.in[0], &k = args.in[1], &v = args.in[2];
  int64_t heads = heads_of(args.attrs);
  std::string shapes = to_string(q) + ", " + to_string(k) + ", " + to_string(v);
  if (q.dims.size() != 3 || k.dims.size() != 3 || k != v || q.dtype != k.dtype ||
      q.dims[0] != k.dims[0] || q.dims[2] != k.dims[2] || !is_real(q.dtype))
    throw std::invalid_argument("needs q [B,T,C], k and v [B,S,C] of one real dtype, not " +
                                shapes + how_to_make_real(q.dtype));
  if (heads < 1 || q.dims[2] % heads)
    throw std::invalid_argument("width " + std::to_string(q.dims[2]) + " does not divide into " +
                                std::to_string(heads) + " heads");
  const double dropout = attr_real(args.attrs, "dropout", 0);
  if (!(dropout >= 0 && dropout < 1) || (dropout > 0) != (args.in.size() == 6))
    throw std::invalid_argument("dropout " + std::to_string(dropout) +
                                " needs 0 <= dropout < 1 and, above 0, seed, step and base");
  return {q, {q.dtype == ORR_F64 ? ORR_F64 : ORR_F32, {q.dims[0], heads, q.dims[1]}}};
}

std::vector<Type> infer_grad(const OpArgs& args) { return {args.in[1], args.in[2], args.in[3]}; }

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s;
  auto batch_only = [](const Type& t) {
    std::vector<int> f(t.dims.size(), kNone);
    if (!f.empty()) f[0] = 0;
    return f;
  };
  for (const Type& t : args.in) s.in.push_back(batch_only(t));
  for (const Type& t : out) s.out.push_back(batch_only(t));
  return s;
}

void gradient(Gradient& g, const Op& op) {
  if (g.dy() == kNone) return;
  std::vector<ValueId> in = {g.dy(), op.in[0], op.in[1], op.in[2], op.out[0], op.out[1]};
  in.insert(in.end(), op.in.begin() + 3, op.in.end());
  auto d = g.p.add("attention_grad", in, op.attrs);
  for (size_t i = 0; i < 3; ++i)
    if (g.wanted(op.in[i])) g.add(op.in[i], d[i]);
}

// [B,T,H*D] as [B,H,T,D].
Layout by_head(const Layout& x, int64_t heads) {
  int64_t d = x.dims[2] / heads;
  return {x.dtype,
          {x.dims[0], heads, x.dims[1], d},
          {x.strides[0], d * x.strides[2], x.strides[1], x.strides[2]}};
}

KernelForm form(const Op& op, const std::vector<Layout>& in, const std::vector<Layout>& out) {
  KernelForm f;
  int64_t heads = heads_of(op.attrs);
  for (size_t i = 0; i < in.size(); ++i) {
    if (i >= operands_of(op.kind)) {
      f.in.push_back({in[i].dtype, {}, {}});
      continue;
    }
    bool lse = op.kind == "attention_grad" && i == 5;
    if (lse ? !in[i].is_contiguous() : in[i].strides[2] != 1 && in[i].dims[2] != 1)
      f.copy.push_back(static_cast<int>(i));
    f.in.push_back(lse ? Layout::contiguous({in[i].dtype, in[i].dims}) : by_head(in[i], heads));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    bool lse = op.kind == "attention" && i == 1;
    f.out_ok = f.out_ok && (lse ? out[i].is_contiguous() : out[i].strides[2] == 1);
    f.out.push_back(lse ? out[i] : by_head(out[i], heads));
  }
  return f;
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  bool grad = args.kind == "attention_grad";
  const Dims &q = args.in[grad ? 1 : 0].dims, &k = args.in[grad ? 2 : 1].dims;
  double full = 2.0 * static_cast<double>(q[0] * q[1] * k[1] * q[2]);
  double part = attr_int(args.attrs, "causal", 0) ? 0.5 : 1;
  c.matrix = true;
  c.flops = (grad ? 5 : 2) * full * part;
  return c;
}

}  // namespace

extern const OpDef attention_op{"attention", infer, sharding, gradient, cost, form};
extern const OpDef attention_grad_op{"attention_grad", infer_grad, sharding, nullptr, cost, form};

}  // namespace orrery
