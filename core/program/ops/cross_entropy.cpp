// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy: logits[..., V], labels[...], weights[...] -> weighted loss[...], lse[...] for each
// row, and its gradient with respect to the logits.
#include <stdexcept>

#include "program/autodiff.h"
#include "program/build.h"
#include "program/op.h"
#include "program/wanted.h"

namespace orrery {
namespace {

int32_t loss_dtype(int32_t logits) { return logits == ORR_F64 ? ORR_F64 : ORR_F32; }

std::vector<Type> infer(const OpArgs& args) {
  const Type &x = args.in[0], &labels = args.in[1], &w = args.in[2];
  if (x.dims.empty() || !is_real(x.dtype))
    throw std::invalid_argument("needs real logits [..., classes], not " + to_string(x) +
                                how_to_make_real(x.dtype));
  Dims rows(x.dims.begin(), x.dims.end() - 1);
  if (labels.dims != rows)
    throw std::invalid_argument("labels are " + to_string(labels.dims) + " but logits " +
                                to_string(x.dims) + " want " + to_string(rows));
  if (labels.dtype != ORR_I32 && labels.dtype != ORR_I64)
    throw std::invalid_argument(std::string("labels must be i32 or i64, not ") +
                                dtype_name(labels.dtype) +
                                "; write 1 for 1.0, or orrery.tensor(labels, \"i32\")");
  Type row{loss_dtype(x.dtype), rows};
  if (w != row)
    throw std::invalid_argument("weights are " + to_string(w) + ", wanted " + to_string(row));
  return {row, row};
}

std::vector<Type> infer_grad(const OpArgs& args) { return {args.in[1]}; }

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  size_t logits = args.kind == "cross_entropy" ? 0 : 1;
  return row_sharding(args, out, args.in[logits].dims.size(), 1);
}

ValueId column(Program& p, ValueId rows) {
  Dims dims = p.type(rows).dims;
  dims.push_back(1);
  return build::reshape(p, rows, dims);
}

// exp(x - lse), in the dtype of lse.
ValueId probabilities(Program& p, ValueId x, ValueId lse) {
  const ValueId wide = p.cast(x, p.type(lse).dtype);
  return p.pointwise(ORR_FN_EXP, {p.pointwise(ORR_FN_SUB, {wide, column(p, lse)})});
}

void gradient(Gradient& g, const Op& op) {
  Program& p = g.p;
  ValueId x = op.in[0], dy = g.dy(), dlse = g.dy(1), w = op.in[2];
  if (dlse != kNone && g.wanted(x)) {
    const ValueId y = probabilities(p, x, op.out[1]);
    g.add(x, p.cast(p.pointwise(ORR_FN_MUL, {y, column(p, dlse)}), p.type(x).dtype));
  }
  if (dy == kNone) return;
  if (g.wanted(x)) g.add(x, p.add1("cross_entropy_grad", {dy, x, op.in[1], w, op.out[1]}));
  if (!g.wanted(w)) return;
  // The loss is linear in its weight; where that is 0 the label may be none, so its slope stays 0.
  ValueId counts = p.cast(p.pointwise(ORR_FN_NE, {w, Operand::number(0)}), p.type(w).dtype);
  ValueId loss = p.add("cross_entropy", {x, op.in[1], counts})[0];
  g.add(w, p.pointwise(ORR_FN_MUL, {dy, loss}));
}

// dloss * w * (exp(x - lse) - [class = label]).
std::vector<ValueId> grad_parts(Program& p, const Op& op) {
  const ValueId x = op.in[1], labels = op.in[2];
  const ValueId y = probabilities(p, x, op.in[4]);
  const ValueId classes = build::iota(p, p.type(x).dims.back(), p.type(labels).dtype);
  const ValueId hit = p.pointwise(ORR_FN_EQ, {column(p, labels), classes});
  const ValueId rest = p.pointwise(ORR_FN_SUB, {y, p.cast(hit, p.type(y).dtype)});
  const ValueId each = p.pointwise(ORR_FN_MUL, {op.in[0], op.in[3]});
  return {p.cast(p.pointwise(ORR_FN_MUL, {rest, column(p, each)}), p.type(x).dtype)};
}

void grad_gradient(Gradient& g, const Op& op) { gradient_by_parts(g, op, grad_parts); }

KernelForm form(const Op& op, const std::vector<Layout>& in, const std::vector<Layout>& out) {
  return contiguous_form(in, out, op.kind == "cross_entropy" ? "rffff" : "frfffr");
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  size_t logits = args.kind == "cross_entropy" ? 0 : 1;
  c.flops = 4.0 * static_cast<double>(args.in[logits].elements());
  return c;
}

}  // namespace

extern const OpDef cross_entropy_op{"cross_entropy", infer, sharding, gradient, cost, form};
extern const OpDef cross_entropy_grad_op{"cross_entropy_grad", infer_grad, sharding,
                                         grad_gradient,        cost,       form};

}  // namespace orrery
