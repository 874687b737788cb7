// SPDX-License-Identifier: Apache-2.0
//
// norm_param_grad: the gradients of a norm's weight and bias, as the column sums of two
// expressions.
#include <vector>

#include "column_sums.h"
#include "norm.h"

namespace orr_cuda {
namespace {

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

FoldPlan plan_of(const orr_op& op) {
  return FoldPlan(op, 1, op.in[0].dims[0], op.in[0].dims[1], is_rms(op) ? 1 : 2, ORR_SUM_ROWS);
}

void supports(const orr_op& op, orr_support& out) {
  require_norm_params(op);
  orr::copy_text(out.numerics, "cuda.norm_param_grad.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

// dy * (x - mean) * rstd and dy, in accumulators.
struct Terms {
  explicit Terms(const orr_op& op) : in(op.in, op.in + op.n_in), pointwise(op) {
    const int32_t dtype = in[0].dtype;
    wide = wide_dtype(dtype);
    for (int i = 2; i < op.n_in; ++i) {  // one for each row
      in[size_t(i)].rank = 2, in[size_t(i)].dims[1] = op.in[0].dims[1];
      in[size_t(i)].strides[1] = 0;
    }
    const int32_t dy = push(ORR_FN_CAST, push(ORR_FN_INPUT, 0, 0, dtype));
    int32_t x = push(ORR_FN_CAST, push(ORR_FN_INPUT, 1, 0, dtype));
    if (op.n_in == 4) x = push(ORR_FN_SUB, x, push(ORR_FN_INPUT, 2));
    const int32_t rstd = push(ORR_FN_INPUT, op.n_in - 1);
    stored[0] = push(ORR_FN_MUL, push(ORR_FN_MUL, dy, x), rstd), stored[1] = dy;
    out[0] = out[1] = in[0];
    out[0].dtype = out[1].dtype = wide;
    expr = {sizeof expr, int32_t(instrs.size()), op.n_out, 0, instrs.data(), stored};
    pointwise.in = in.data(), pointwise.out = out, pointwise.expr = &expr;
  }
  Terms(const Terms&) = delete;

  int32_t push(int32_t fn, int32_t a, int32_t b = 0, int32_t dtype = 0) {
    instrs.push_back({fn, dtype ? dtype : wide, a, b, 0, 0, 0});
    return int32_t(instrs.size()) - 1;
  }

  std::vector<orr_tensor> in;
  orr_tensor out[2];
  std::vector<orr_instr> instrs;
  int32_t stored[2], wide;
  orr_expr expr;
  orr_op pointwise;
};

struct NormParam : Prepared {
  explicit NormParam(const orr_op& op) {
    const FoldPlan plan = plan_of(op);
    if (plan.columns > 0)
      sums_ = std::make_unique<ColumnSums>(Terms(op).pointwise, plan, op.in[0].dtype, true, false);
  }

  void launch(CUstream stream, const Buffers& b) override {
    if (sums_) sums_->launch(stream, b.in, nullptr, b);
  }

  std::unique_ptr<ColumnSums> sums_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<NormParam>(op); }

}  // namespace

extern const Family norm_param_grad_family;
const Family norm_param_grad_family = {"norm_param_grad", supports, measure, prepare};

}  // namespace orr_cuda
