// SPDX-License-Identifier: Apache-2.0
//
// softmax and softmax_grad over rows.
#include "rows.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class T>
struct Softmax : Kernel {
  explicit Softmax(const orr_op& op) : rows(op.in[0].dims[0]), columns(op.in[0].dims[1]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* x = host<T>(in[0]);
    T* y = host<T>(out[0]);
    parallel_ranges(rows, row_grain(columns), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) row(x + r * columns, y + r * columns);
    });
  }

  // The exponentials are made twice, so that y may be x and 16-bit results round once.
  void row(const T* x, T* y) const {
    auto top = splat(row_max(x, columns));
    auto sum =
        row_sum<Vec<T>>(columns, [&](int64_t i, auto n) { return exp(load(x + i, n) - top); });
    auto scale = splat(Scalar<T>(1) / sum);
    each_vector(0, columns,
                [&](int64_t i, auto n) { store(y + i, exp(load(x + i, n) - top) * scale, n); });
  }

  int64_t rows, columns;
};

template <class T>
struct SoftmaxGrad : Kernel {
  explicit SoftmaxGrad(const orr_op& op) : rows(op.in[0].dims[0]), columns(op.in[0].dims[1]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T *dy = host<T>(in[0]), *y = host<T>(in[1]);
    T* dx = host<T>(out[0]);
    parallel_ranges(rows, row_grain(columns), [&](int64_t first, int64_t last) {
      for (int64_t at = first * columns; at < last * columns; at += columns)
        row(dy + at, y + at, dx + at);
    });
  }

  void row(const T* dy, const T* y, T* dx) const {
    auto sum = splat(row_sum<Vec<T>>(
        columns, [&](int64_t i, auto n) { return load(dy + i, n) * load(y + i, n); }));
    each_vector(0, columns, [&](int64_t i, auto n) {
      store(dx + i, load(y + i, n) * (load(dy + i, n) - sum), n);
    });
  }

  int64_t rows, columns;
};

}  // namespace

Kernel* make_softmax(const orr_op& op) { return make_real<Softmax>(op.in[0].dtype, op); }
Kernel* make_softmax_grad(const orr_op& op) { return make_real<SoftmaxGrad>(op.in[0].dtype, op); }

}  // namespace orr_cpu::ORR_ISA
