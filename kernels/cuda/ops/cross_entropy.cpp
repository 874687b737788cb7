// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy and its gradient.
#include "../device/cross_entropy.h"

#include <orrery/sdk/kind_checks.hpp>

#include "../late.h"
#include "row_launch.h"

namespace orr_cuda {
namespace {

void supports(const orr_op& op, orr_support& out) {
  require_cross_entropy(op);
  require_rows(op.in[0]);
  out.strided_in = 1, out.strided_out = op.n_out == 3 ? 4 : 0;
  orr::copy_text(out.numerics, "cuda.cross_entropy.2: sums as in ops.h, exp of the device");
}

void supports_grad(const orr_op& op, orr_support& out) {
  require_cross_entropy_grad(op);
  require_rows(op.in[1]);
  out.inplace = 2, out.strided_in = 2, out.strided_out = 1;
  orr::copy_text(out.numerics, "cuda.cross_entropy_grad.2: exp of the device");
}

struct CrossEntropy : Prepared {
  explicit CrossEntropy(const orr_op& op)
      : grad_(op.n_out == 1),
        both_(op.n_out == 3),
        logits_(grad_ ? 1 : 0),
        rows_(function_name(op.kind, op.in[logits_].dtype), op.in[logits_], logits_ ? 0 : 1,
              !grad_),
        step_(op.in[logits_].strides[0]),
        step_out_(op.out[both_ ? 2 : 0].strides[0]),
        late_(op, outside("label", op.in[logits_].dims[1], "classes")),
        wide_labels_(op.in[logits_ + 1].dtype == ORR_I64) {}

  void launch(CUstream stream, const Buffers& b) override {
    CrossEntropyArgs args{};
    args.logits = pointer(b.in[logits_]);
    args.labels = pointer(b.in[logits_ + 1]);
    args.w = pointer(b.in[logits_ + 2]);
    args.loss = grad_ ? nullptr : pointer(b.out[0]);
    args.lse = pointer(grad_ ? b.in[4] : b.out[1]);
    args.dloss = grad_ ? pointer(b.in[0]) : both_ ? pointer(b.in[3]) : nullptr;
    args.dlogits = grad_ ? pointer(b.out[0]) : both_ ? pointer(b.out[2]) : nullptr;
    args.step = step_, args.step_out = step_out_;
    args.late = late_.args();
    args.wide_labels = wide_labels_;
    rows_(stream, args);
  }

  bool grad_, both_;
  int logits_;  // which input they are
  RowLaunch rows_;
  int64_t step_, step_out_;  // of logits and of dlogits
  LateSource late_;
  bool wide_labels_;
};

}  // namespace

const Family cross_entropy_family = {"cross_entropy", supports, nullptr, prepare_as<CrossEntropy>};
const Family cross_entropy_grad_family = {"cross_entropy_grad", supports_grad, nullptr,
                                          prepare_as<CrossEntropy>};

}  // namespace orr_cuda
