// SPDX-License-Identifier: Apache-2.0
//
// softmax over the last dim, and its gradient.
#include <stdexcept>

#include "program/autodiff.h"
#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

std::vector<Type> infer(const OpArgs& args) {
  if (args.in[0].dims.empty() || !is_real(args.in[0].dtype))
    throw std::invalid_argument("needs a real tensor with at least one dim, not " +
                                to_string(args.in[0]));
  return {args.in[0]};
}

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  return row_sharding(args, out, out[0].dims.size(), 1);
}

void gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0])) g.add(op.in[0], g.p.add1("softmax_grad", {g.dy(), op.out[0]}));
}

// y * (dy - sum(dy * y)).
std::vector<ValueId> grad_parts(Program& p, const Op& op) {
  const ValueId dy = op.in[0], y = op.in[1], each = p.pointwise(ORR_FN_MUL, {dy, y});
  const ValueId row = build::reduce(p, "sum", each, {-1}, true);
  return {p.pointwise(ORR_FN_MUL, {y, p.pointwise(ORR_FN_SUB, {dy, row})})};
}

void grad_gradient(Gradient& g, const Op& op) { gradient_by_parts(g, op, grad_parts); }

KernelForm form(const Op&, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  return contiguous_form(in, out, "rr");
}

KernelForm grad_form(const Op&, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  return contiguous_form(in, out, "rrr");
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  c.flops *= 5;
  return c;
}

}  // namespace

extern const OpDef softmax_op{"softmax", infer, sharding, gradient, cost, form};
extern const OpDef softmax_grad_op{"softmax_grad", infer, sharding, grad_gradient, cost, grad_form};

}  // namespace orrery
