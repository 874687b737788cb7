// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

// Logits, labels and weights are the inputs from `x` on.
void check_inputs(const orr_op& op, int x) {
  require(op.in[x].rank == 2 && op.in[x].dims[1] > 0, "logits have two dims, and classes");
  require_index(op.in[x + 1]);
  for (int i : {x + 1, x + 2}) require_dims(op.in[i], {op.in[x].dims[0]});
}

void check_forward(const orr_op& op) {
  require_counts(op, 3, 2), require_real(op, {0, 2, 3, 4}), check_inputs(op, 0);
  for (int i : {3, 4}) require_dims(tensor(op, i), {op.in[0].dims[0]});
}

void check_grad(const orr_op& op) {
  require_counts(op, 5, 1), require_real(op, {1, 0, 3, 4, 5}), check_inputs(op, 1);
  for (int i : {0, 4}) require_dims(tensor(op, i), {op.in[1].dims[0]});
  require_dims(op.out[0], {op.in[1].dims[0], op.in[1].dims[1]});
}

std::vector<Pass> passes(const orr_op& op, int x, std::vector<int> tensors) {
  const int64_t classes = op.in[x].dims[1];
  const std::string n = std::to_string(classes);
  return {{cross_entropy_cl,
           typed(op.in[x].dtype) + " -DINDEX=" + c_type(op.in[x + 1].dtype),
           op.kind,
           op.in[x].dims[0],
           std::move(tensors),
           {classes},
           {},
           "cross_entropy: label {value} in row {row} is outside the " + n + " classes (0.." +
               std::to_string(classes - 1) + ")"}};
}

std::vector<Pass> forward(const orr_op& op) { return passes(op, 0, {0, 1, 2, 3, 4}); }
std::vector<Pass> gradient(const orr_op& op) { return passes(op, 1, {0, 1, 2, 3, 4, 5}); }

int32_t on_logits(const orr_op&) { return 2; }

}  // namespace

const Family cross_entropy_family = {"cross_entropy", check_forward, forward};
const Family cross_entropy_grad_family = {
    "cross_entropy_grad", check_grad, gradient, 0, 0, on_logits};

}  // namespace ocl
