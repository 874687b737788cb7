// SPDX-License-Identifier: Apache-2.0
//
// layernorm and rmsnorm over the last dim, with their gradients.
#include <numeric>
#include <stdexcept>

#include "program/autodiff.h"
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

// -- gradients ------------------------------------------------------------------------------------

// Statistics [rows...] as [rows..., 1].
ValueId column(Program& p, ValueId statistic) {
  Dims dims = p.type(statistic).dims;
  dims.push_back(1);
  return build::reshape(p, statistic, dims);
}

ValueId times(Program& p, ValueId a, Operand b) { return p.pointwise(ORR_FN_MUL, {a, b}); }

// The mean of every row, [rows..., 1].
ValueId row_mean(Program& p, ValueId x) { return build::mean(p, x, {-1}, true); }

// Of an op that has statistics: x and what else it reads, as it computes with them, and the
// normalised x. mean: kNone for rmsnorm.
struct Normalised {
  Normalised(Program& p, ValueId x, ValueId mean, ValueId rstd)
      : dtype(p.type(rstd).dtype), rstd(column(p, rstd)) {
    ValueId from = p.cast(x, dtype);
    if (mean != kNone) from = p.pointwise(ORR_FN_SUB, {from, column(p, mean)});
    xhat = times(p, from, this->rstd);
  }
  int32_t dtype;
  ValueId rstd, xhat;
};

// The cotangent of x that those of the statistics are: mean = sum(x)/n; for both norms
// d rstd / dx = -rstd^2 * xhat / n.
void add_statistics(Gradient& g, ValueId x, ValueId mean, ValueId rstd, ValueId dmean,
                    ValueId drstd) {
  Program& p = g.p;
  if (!g.wanted(x) || (dmean == kNone && drstd == kNone)) return;
  const double n = static_cast<double>(p.type(x).dims.back());
  ValueId dx = kNone;
  if (drstd != kNone) {
    const Normalised z(p, x, mean, rstd);
    const ValueId slope = times(p, times(p, z.rstd, z.rstd), Operand::number(-1 / n));
    dx = times(p, z.xhat, times(p, slope, column(p, drstd)));
  }
  if (dmean != kNone) {
    const ValueId each = times(p, column(p, dmean), Operand::number(1 / n));
    dx = dx == kNone ? build::broadcast_like(p, each, x) : p.pointwise(ORR_FN_ADD, {dx, each});
  }
  g.add(x, p.cast(dx, p.type(x).dtype));
}

void add_params(Gradient& g, ValueId w, ValueId b, std::vector<ValueId> rows, const Attrs& attrs) {
  if (!g.wanted(w) && !(b != kNone && g.wanted(b))) return;
  for (ValueId& v : rows) v = build::batch_first(g.p, v);
  const auto d = g.p.add("norm_param_grad", rows, attrs);
  if (g.wanted(w)) g.add(w, d[0]);
  if (b != kNone && g.wanted(b)) g.add(b, d[1]);
}

void layernorm_gradient(Gradient& g, const Op& op) {
  ValueId x = op.in[0], w = op.in[1], b = op.in[2], mean = op.out[1], rstd = op.out[2], dy = g.dy();
  add_statistics(g, x, mean, rstd, g.dy(1), g.dy(2));
  if (dy == kNone) return;
  if (g.wanted(x)) g.add(x, g.p.add1("layernorm_grad", {dy, x, w, mean, rstd}));
  add_params(g, w, b, {dy, x, mean, rstd}, {});
}

void rmsnorm_gradient(Gradient& g, const Op& op) {
  ValueId x = op.in[0], w = op.in[1], rstd = op.out[1], dy = g.dy();
  add_statistics(g, x, kNone, rstd, kNone, g.dy(1));
  if (dy == kNone) return;
  if (g.wanted(x)) g.add(x, g.p.add1("rmsnorm_grad", {dy, x, w, rstd}));
  add_params(g, w, kNone, {dy, x, rstd}, {{"rms", int64_t{1}}});
}

// rstd * (g - mean(g) - xhat * mean(g * xhat)) of g = dy * w; without mean(g) for rmsnorm.
std::vector<ValueId> grad_parts(Program& p, const Op& op) {
  const bool rms = op.kind == "rmsnorm_grad";
  const Normalised z(p, op.in[1], rms ? kNone : op.in[3], op.in.back());
  const ValueId dy = times(p, p.cast(op.in[0], z.dtype), p.cast(op.in[2], z.dtype));
  const ValueId along = times(p, z.xhat, row_mean(p, times(p, dy, z.xhat)));
  ValueId rest = p.pointwise(ORR_FN_SUB, {dy, along});
  if (!rms) rest = p.pointwise(ORR_FN_SUB, {rest, row_mean(p, dy)});
  return {p.cast(times(p, rest, z.rstd), p.type(op.in[0]).dtype)};
}

void grad_gradient(Gradient& g, const Op& op) { gradient_by_parts(g, op, grad_parts); }

// The sums over the rows of dy * xhat and of dy.
std::vector<ValueId> param_parts(Program& p, const Op& op) {
  const Normalised z(p, op.in[1], op.in.size() == 4 ? op.in[2] : kNone, op.in.back());
  const ValueId dy = p.cast(op.in[0], z.dtype);
  Dims rows(p.type(dy).dims.size() - 1);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<ValueId> found;
  for (ValueId each : {times(p, dy, z.xhat), dy}) {
    const ValueId whole = rows.empty() ? each : build::reduce(p, "sum", each, rows, false);
    found.push_back(p.cast(whole, p.type(op.out[0]).dtype));
  }
  found.resize(op.out.size());
  return found;
}

void param_gradient(Gradient& g, const Op& op) { gradient_by_parts(g, op, param_parts); }

KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  const std::string& k = op.kind;
  if (k == "layernorm") return contiguous_form(in, out, "rffrff");
  if (k == "rmsnorm") return contiguous_form(in, out, "rfrf");
  if (k == "layernorm_grad") return contiguous_form(in, out, "rrfffr");
  if (k == "rmsnorm_grad") return contiguous_form(in, out, "rrffr");
  return contiguous_form(in, out, in.size() == 4 ? "rrffff" : "rrff");  // norm_param_grad
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
                                     grad_gradient,    cost,       form};
extern const OpDef rmsnorm_op{"rmsnorm", infer, forward_sharding, rmsnorm_gradient, cost, form};
extern const OpDef rmsnorm_grad_op{"rmsnorm_grad", infer_grad, grad_sharding,
                                   grad_gradient,  cost,       form};
extern const OpDef norm_param_grad_op{
    "norm_param_grad", infer_param_grad, param_sharding, param_gradient, cost, form};

}  // namespace orrery
