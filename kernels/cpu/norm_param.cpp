// SPDX-License-Identifier: Apache-2.0
//
// norm_param_grad: column sums of dy * (x - mean) * rstd and of dy, leaf by leaf.
#include "leaves.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class T, class Y>
struct NormParamGrad : Kernel {
  using S = Scalar<T>;
  explicit NormParamGrad(const orr_op& op)
      : leaves(op),
        rows(op.in[0].dims[0]),
        columns(op.in[0].dims[1]),
        rms(attr_int(op, "rms", 0) == 1) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T *dy = host<T>(in[0]), *x = host<T>(in[1]);
    if (rms) {
      const S* rstd = host<S>(in[2]);
      return column_sums(leaves, rows, columns, host<Y>(out[0]), [&](int64_t r, int64_t c, auto n) {
        int64_t at = r * columns + c;
        return load(dy + at, n) * load(x + at, n) * splat(rstd[r]);
      });
    }
    const S *mean = host<S>(in[2]), *rstd = host<S>(in[3]);
    column_sums(leaves, rows, columns, host<Y>(out[0]), [&](int64_t r, int64_t c, auto n) {
      int64_t at = r * columns + c;
      return load(dy + at, n) * (load(x + at, n) - splat(mean[r])) * splat(rstd[r]);
    });
    column_sums(leaves, rows, columns, host<Y>(out[1]),
                [&](int64_t r, int64_t c, auto n) { return load(dy + r * columns + c, n); });
  }

  Leaves leaves;
  int64_t rows, columns;
  bool rms;
};

}  // namespace

Kernel* make_norm_param_grad(const orr_op& op) {
  return make_sum<NormParamGrad>(op.in[0].dtype, op.out[0].dtype, op);
}

}  // namespace orr_cpu::ORR_ISA
