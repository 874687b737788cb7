// SPDX-License-Identifier: Apache-2.0
//
// The op fold.
#include "../device/windows.h"

#include <algorithm>
#include <orrery/sdk/kind_checks.hpp>

#include "../function.h"
#include "../op.h"

namespace orr_cuda {
namespace {

WindowArgs geometry(const orr_op& op) {
  const Windows w(op);
  WindowArgs a{};
  a.lead = w.lead, a.width = w.width;
  std::copy_n(w.count, 3, a.count), std::copy_n(w.size, 3, a.size);
  std::copy_n(w.length, 3, a.length), std::copy_n(w.stride, 3, a.stride);
  std::copy_n(w.dilation, 3, a.dilation);
  return a;
}

void supports_fold(const orr_op& op, orr_support& out) {
  require_fold(op);
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
