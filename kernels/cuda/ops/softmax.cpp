// SPDX-License-Identifier: Apache-2.0
//
// softmax and softmax_grad.
#include "../device/softmax.h"

#include "row_launch.h"

namespace orr_cuda {
namespace {

void supports(const orr_op& op, orr_support& out, int n_in, const char* numerics) {
  require_counts(op, n_in, 1);
  require_rows(op.in[0]);
  require_real(op.in[0], "x");
  for (const orr_tensor* t : {&op.in[n_in - 1], &op.out[0]}) {
    require_dtype(*t, op.in[0].dtype, "y");
    require_shape(*t, {op.in[0].dims[0], op.in[0].dims[1]}, "y");
  }
  out.inplace = 1;
  orr::copy_text(out.numerics, numerics);
}

void supports_forward(const orr_op& op, orr_support& out) {
  supports(op, out, 1, "cuda.softmax.1: sums as in ops.h, exp of the device");
}
void supports_grad(const orr_op& op, orr_support& out) {
  supports(op, out, 2, "cuda.softmax_grad.1: sums as in ops.h");
}

struct Softmax : Prepared {
  explicit Softmax(const orr_op& op)
      : rows_(function_name(op.kind, op.in[0].dtype), op.in[0], op.n_in), grad_(op.n_in == 2) {}

  void launch(CUstream stream, const Buffers& b) override {
    SoftmaxArgs args{.rows = {},
                     .x = pointer(b.in[0]),
                     .other = grad_ ? pointer(b.in[1]) : nullptr,
                     .y = pointer(b.out[0])};
    rows_(stream, args);
  }

  RowLaunch rows_;
  bool grad_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<Softmax>(op); }

}  // namespace

extern const Family softmax_family, softmax_grad_family;
const Family softmax_family = {"softmax", supports_forward, nullptr, prepare};
const Family softmax_grad_family = {"softmax_grad", supports_grad, nullptr, prepare};

}  // namespace orr_cuda
