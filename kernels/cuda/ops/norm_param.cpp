// SPDX-License-Identifier: Apache-2.0
//
// norm_param_grad: the gradients of a norm's weight and bias.
#include "fold_launch.h"
#include "require_nodes.h"

namespace orr_cuda {
namespace {

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

FoldPlan plan_of(const orr_op& op) {
  return FoldPlan(op, 1, op.in[0].dims[0], op.in[0].dims[1], is_rms(op) ? 1 : 2, kColumnBlock);
}

void supports(const orr_op& op, orr_support& out) {
  const bool rms = is_rms(op);
  require_counts(op, rms ? 3 : 4, rms ? 1 : 2);
  require_rank(op.in[0], 2, "dy");
  require_real(op.in[0], "dy");
  const int64_t rows = op.in[0].dims[0], columns = op.in[0].dims[1];
  require_dtype(op.in[1], op.in[0].dtype, "x");
  require_shape(op.in[1], {rows, columns}, "x");
  for (int i = 2; i < op.n_in; ++i) {
    require_dtype(op.in[i], wide_dtype(op.in[0].dtype), "mean or rstd");
    require_shape(op.in[i], {rows}, "mean or rstd");
  }
  require_leaves(op, rows);
  for (int i = 0; i < op.n_out; ++i) {
    require_dtype(op.out[i], op.in[0].dtype, "dw or db");
    require_nodes(op, op.out[i], {columns}, "dw or db");
  }
  orr::copy_text(out.numerics, "cuda.norm_param_grad.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

struct NormParam : Prepared {
  explicit NormParam(const orr_op& op)
      : plan_(plan_of(op)),
        first_(find_function(std::string("norm_param_grad_") + dtype_name(op.in[0].dtype))),
        fold_(plan_, op.in[0].dtype, kFoldSum, true),
        dtype_(op.in[0].dtype) {}

  void launch(CUstream stream, const Buffers& b) override {
    if (plan_.columns == 0) return;
    const bool rms = plan_.arrays == 1;
    const int64_t width = plan_.width(dtype_, {b.in[0], b.in[1]});
    const NormParamArgs args{pointer(b.in[0]),
                             pointer(b.in[1]),
                             rms ? nullptr : pointer(b.in[2]),
                             pointer(b.in[rms ? 2 : 3]),
                             fold_.first(b),
                             plan_.segments,
                             plan_.length,
                             plan_.columns,
                             plan_.entries,
                             width > 1};
    enqueue(stream, first_, plan_.column_grid(plan_.entries, width), {kFoldThreads}, 0, args);
    fold_.rest(stream, b);
  }

  FoldPlan plan_;
  Function first_;
  FoldLaunch fold_;
  int32_t dtype_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<NormParam>(op); }

}  // namespace

extern const Family norm_param_grad_family;
const Family norm_param_grad_family = {"norm_param_grad", supports, measure, prepare};

}  // namespace orr_cuda
