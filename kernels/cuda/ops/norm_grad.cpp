// SPDX-License-Identifier: Apache-2.0
//
// norm_grad: the input gradient of a norm, the gradients of its weight and bias, and the sum of
// what it stores, in one pass over the rows.
#include <vector>

#include "../device/norm.h"
#include "fold_launch.h"
#include "norm.h"
#include "require_nodes.h"

namespace orr_cuda {

extern const Family layernorm_grad_family, rmsnorm_grad_family;

namespace {

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

// How many inputs the op has without what is added to dx.
int gradient_inputs(const orr_op& op) { return is_rms(op) ? 4 : 5; }

// How many outputs it has without the sum of the first.
int gradients(const orr_op& op) { return is_rms(op) ? 2 : 3; }

// The sums of a block.
int64_t sums_bytes(const orr_op& op) {
  return kFoldArrays * op.in[0].dims[1] * orr_dtype_bytes(wide_dtype(op.in[0].dtype));
}

FoldPlan plan_of(const orr_op& op) {
  return FoldPlan(op, 1, op.in[0].dims[0], op.in[0].dims[1], op.n_out - 1, ORR_SUM_ROWS);
}

// What the families of the two ops that this one stands for support.
void supports(const orr_op& op, orr_support& out) {
  const int n_in = gradient_inputs(op);
  require(op.n_in == n_in || op.n_in == n_in + 1, "another number of inputs is needed");
  const int n_out = gradients(op);
  require(op.n_out == n_out || op.n_out == n_out + 1, "another number of outputs is needed");
  orr_op grad = op, param = op;
  grad.n_in = n_in, grad.n_out = 1;
  (is_rms(op) ? rmsnorm_grad_family : layernorm_grad_family).supports(grad, out);
  std::vector<orr_tensor> in(op.in, op.in + n_in);
  in.erase(in.begin() + 2);  // w
  param.n_in = n_in - 1, param.in = in.data();
  param.n_out = n_out - 1, param.out = op.out + 1;
  require_norm_params(param);
  if (op.n_in > n_in) {
    require_dtype(op.in[n_in], op.in[0].dtype, "what is added");
    require_shape(op.in[n_in], {op.in[0].dims[0], op.in[0].dims[1]}, "what is added");
  }
  if (op.n_out > n_out) {
    require_dtype(op.out[n_out], op.in[0].dtype, "the sum");
    require_nodes(op, op.out[n_out], {op.in[0].dims[1]}, "the sum");
  }
  require(sums_bytes(op) <= kSharedLimit / 2, "rows too long for a block to keep their sums");
  out.inplace = 0;  // dy is read again for db
  orr::copy_text(out.numerics, "cuda.norm_grad.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

struct NormGrad : Prepared {
  explicit NormGrad(const orr_op& op)
      : gradient_inputs_(gradient_inputs(op)),
        n_in_(op.n_in),
        sums_y_(op.n_out > gradients(op)),
        plan_(plan_of(op)),
        rows_(function_name(op.kind, op.in[0].dtype), op.in[0], 2, false, sums_bytes(op)),
        fold_(plan_, op.in[0].dtype, kFoldSum, true) {
    rows_.grid = {unsigned(plan_.segments * plan_.entries)};
  }

  void launch(CUstream stream, const Buffers& b) override {
    const Buffers sums{b.in, b.out + 1, b.workspace};
    NormGradArgs args{};
    args.dy = pointer(b.in[0]), args.x = pointer(b.in[1]), args.w = pointer(b.in[2]);
    args.mean = gradient_inputs_ == 5 ? pointer(b.in[3]) : nullptr;
    args.rstd = pointer(b.in[gradient_inputs_ - 1]);
    args.added = n_in_ > gradient_inputs_ ? pointer(b.in[n_in_ - 1]) : nullptr;
    args.y = pointer(b.out[0]);
    args.sums = fold_.first(sums), args.length = plan_.length, args.entries = plan_.entries;
    args.sums_y = sums_y_;
    rows_(stream, args);
    if (plan_.columns > 0) fold_.rest(stream, sums);
  }

  int gradient_inputs_, n_in_;
  bool sums_y_;
  FoldPlan plan_;
  RowLaunch rows_;
  FoldLaunch fold_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<NormGrad>(op); }

}  // namespace

extern const Family norm_grad_family;
const Family norm_grad_family = {"norm_grad", supports, measure, prepare};

}  // namespace orr_cuda
