// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy: logits[..., V], labels[...], weights[...] -> weighted loss[...], lse[...] for each
// row, and its gradient with respect to the logits.
#include <stdexcept>

#include "program/op.h"

namespace orrery {
namespace {

int32_t loss_dtype(int32_t logits) { return logits == ORR_F64 ? ORR_F64 : ORR_F32; }

std::vector<Type> infer(const OpArgs& args) {
  const Type &x = args.in[0], &labels = args.in[1], &w = args.in[2];
  if (x.dims.empty() || !is_real(x.dtype))
    throw std::invalid_argument("needs real logits [..., classes], not " + to_string(x));
  Dims rows(x.dims.begin(), x.dims.end() - 1);
  if (labels.dims != rows)
    throw std::invalid_argument("labels are " + to_string(labels.dims) + " but logits " +
                                to_string(x.dims) + " want " + to_string(rows));
  if (labels.dtype != ORR_I32 && labels.dtype != ORR_I64)
    throw std::invalid_argument(std::string("labels must be i32 or i64, not ") +
                                dtype_name(labels.dtype));
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

void gradient(Gradient& g, const Op& op) {
  if (g.dy() != kNone && g.wanted(op.in[0]))
    g.add(op.in[0], g.p.add1("cross_entropy_grad",
                             {g.dy(), op.in[0], op.in[1], op.in[2], op.out[1]}));
}

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
extern const OpDef cross_entropy_grad_op{"cross_entropy_grad", infer_grad, sharding, nullptr, cost,
                                         form};

}  // namespace orrery
