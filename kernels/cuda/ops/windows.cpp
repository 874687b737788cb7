// SPDX-License-Identifier: Apache-2.0
//
// The op fold.
#include "../device/windows.h"

#include <algorithm>

#include "../function.h"
#include "../op.h"

namespace orr_cuda {
namespace {

WindowArgs geometry(const orr_op& op) {
  const orr_attr &stride = *orr::attr(op, "stride"), &dilation = *orr::attr(op, "dilation");
  const int n = stride.count, shift = 3 - n;
  const int64_t *x = op.in[0].dims, *y = op.out[0].dims;
  WindowArgs a{};
  a.lead = x[0], a.width = x[1 + 2 * n];
  for (int d = 0; d < 3; ++d) {
    const int i = d - shift;
    const bool there = i >= 0;
    a.count[d] = there ? x[1 + i] : 1, a.size[d] = there ? x[1 + n + i] : 1;
    a.length[d] = there ? y[1 + i] : 1;
    a.stride[d] = there ? stride.ints[i] : 1, a.dilation[d] = there ? dilation.ints[i] : 1;
  }
  return a;
}

void supports_fold(const orr_op& op, orr_support& out) {
  require_counts(op, 1, 1);
  const orr_attr *stride = orr::attr(op, "stride"), *dilation = orr::attr(op, "dilation");
  require(stride && dilation && stride->count >= 1 && stride->count <= 3 &&
              dilation->count == stride->count,
          "stride and dilation must have one to three numbers each");
  require_rank(op.in[0], 2 * stride->count + 2, "x");
  require_rank(op.out[0], stride->count + 2, "y");
  require_dtype(op.out[0], op.in[0].dtype, "y");
  require(op.in[0].dtype != ORR_BOOL, "x must not be bool");
  orr::copy_text(out.numerics, "cuda.fold.1: as ops.h");
}

struct WindowSum : Prepared {
  explicit WindowSum(const orr_op& op)
      : function_(find_function(std::string("window_sum_") + dtype_name(op.in[0].dtype))),
        args_(geometry(op)),
        elements_(orr::elements(op.out[0])) {}

  void launch(CUstream stream, const Buffers& b) override {
    args_.x = pointer(b.in[0]), args_.y = pointer(b.out[0]);
    const int64_t blocks = (elements_ + kWindowThreads - 1) / kWindowThreads;
    enqueue(stream, function_, {unsigned(std::min<int64_t>(blocks, 1 << 14))}, {kWindowThreads}, 0,
            args_);
  }

  Function function_;
  WindowArgs args_;
  int64_t elements_;
};

}  // namespace

const Family fold_family = {"fold", supports_fold, nullptr, prepare_as<WindowSum>};

}  // namespace orr_cuda
