// SPDX-License-Identifier: Apache-2.0
//
// layernorm and rmsnorm over the last dim, with their gradients.
#include <stdexcept>

#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

int32_t statistic_dtype(int32_t dtype) { return dtype == ORR_F64 ? ORR_F64 : ORR_F32; }

Type statistic(const Type& x) {
  return {statistic_dtype(x.dtype), Dims(x.dims.begin(), x.dims.end() - 1)};
}

std::vector<Type> infer(const OpArgs& args) {
  const Type& x = args.in[0];
  if (x.dims.empty() || !is_real(x.dtype))
    throw std::invalid_argument("needs a real tensor, not " + to_string(x));
  for (size_t i = 1; i < args.in.size(); ++i)
    if (args.in[i] != Type{x.dtype, {x.dims.back()}})
      throw std::invalid_argument("weight is " + to_string(args.in[i]) + ", the last dim of " +
                                  to_string(x) + " wants " +
                                  to_string(Type{x.dtype, {x.dims.back()}}));
  if (args.kind == "rmsnorm") return {x, statistic(x)};
  return {x, statistic(x), statistic(x)};
}

std::vector<Type> infer_grad(const OpArgs& args) { return {args.in[0]}; }

std::vector<Type> infer_param_grad(const OpArgs& args) {
  Type w{sum_dtype(args.attrs, args.in[0].dtype), {args.in[0].dims.back()}};
  if (attr_int(args.attrs, "rms", 0)) return {w};
  return {w, w};
}

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  return row_sharding(args, out, args.in[0].dims.size(), 1);
}

// Rows are summed: leading factors appear in no output. A weight of rank 1 must not be taken for a
// row statistic when x itself has rank 2.
Sharding weight_safe(const OpArgs& args, const std::vector<Type>& out,
                     std::vector<size_t> weights) {
  Sharding s = sharding(args, out);
  for (size_t i : weights) s.in[i].assign(s.in[i].size(), kNone);
  return s;
}
Sharding forward_sharding(const OpArgs& args, const std::vector<Type>& out) {
  return args.kind == "rmsnorm" ? weight_safe(args, out, {1}) : weight_safe(args, out, {1, 2});
}
Sharding grad_sharding(const OpArgs& args, const std::vector<Type>& out) {
  return weight_safe(args, out, {2});
}
Sharding param_sharding(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s = sharding(args, out);
  for (auto& f : s.out) f.assign(f.size(), kNone);
  return s;
}

void layernorm_gradient(Gradient& g, const Op& op) {
  ValueId x = op.in[0], w = op.in[1], b = op.in[2], mean = op.out[1], rstd = op.out[2], dy = g.dy();
  if (g.wanted(x)) g.add(x, g.p.add1("layernorm_grad", {dy, x, w, mean, rstd}));
  if (!g.wanted(w) && !g.wanted(b)) return;
  auto first = [&](ValueId v) { return build::batch_first(g.p, v); };
  auto d = g.p.add("norm_param_grad", {first(dy), first(x), first(mean), first(rstd)});
  if (g.wanted(w)) g.add(w, d[0]);
  if (g.wanted(b)) g.add(b, d[1]);
}

void rmsnorm_gradient(Gradient& g, const Op& op) {
  ValueId x = op.in[0], w = op.in[1], rstd = op.out[1], dy = g.dy();
  if (g.wanted(x)) g.add(x, g.p.add1("rmsnorm_grad", {dy, x, w, rstd}));
  if (!g.wanted(w)) return;
  auto first = [&](ValueId v) { return build::batch_first(g.p, v); };
  g.add(w, g.p.add1("norm_param_grad", {first(dy), first(x), first(rstd)}, {{"rms", int64_t{1}}}));
}

KernelForm form(const Op& op, const std::vector<Layout>& in, const std::vector<Layout>& out) {
  const std::string& k = op.kind;
  if (k == "layernorm") return contiguous_form(in, out, "rffrff");
  if (k == "rmsnorm") return contiguous_form(in, out, "rfrf");
  if (k == "layernorm_grad") return contiguous_form(in, out, "rrfffr");
  if (k == "rmsnorm_grad") return contiguous_form(in, out, "rrffr");
  return contiguous_form(in, out, in.size() == 4 ? "rrffff" : "rrff");
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  c.flops = 8.0 * static_cast<double>(args.in[0].elements());
  return c;
}

}  // namespace

extern const OpDef layernorm_op{"layernorm",        infer, forward_sharding,
                                layernorm_gradient, cost,  form};
extern const OpDef layernorm_grad_op{"layernorm_grad", infer_grad, grad_sharding,
                                     nullptr,          cost,       form};
extern const OpDef rmsnorm_op{"rmsnorm", infer, forward_sharding, rmsnorm_gradient, cost, form};
extern const OpDef rmsnorm_grad_op{"rmsnorm_grad", infer_grad, grad_sharding, nullptr, cost, form};
extern const OpDef norm_param_grad_op{
    "norm_param_grad", infer_param_grad, param_sharding, nullptr, cost, form};

}  // namespace orrery
