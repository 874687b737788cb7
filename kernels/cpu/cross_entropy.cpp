// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy and its gradient over rows of logits.
#include "integers.h"
#include "rows.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class S>
void check_labels(const Integers& get, const void* labels, const S* w, int64_t rows,
                  int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t label = w[r] != 0 ? get(labels, r) : 0;
    if (label >= 0 && label < classes) continue;
    fail(ORR_INVALID, "cross_entropy: label %lld in row %lld is outside the %lld classes (0..%lld)",
         (long long)label, (long long)r, (long long)classes, (long long)(classes - 1));
  }
}

template <class T>
struct CrossEntropy : Kernel {
  using V = Vec<T>;
  using S = Scalar<T>;
  explicit CrossEntropy(const orr_op& op)
      : label(op, 1),
        rows(op.in[0].dims[0]),
        classes(op.in[0].dims[1]),
        step(op.in[0].strides[0]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* logits = host<T>(in[0]);
    const void* labels = host<void>(in[1]);
    const S* w = host<S>(in[2]);
    S *loss = host<S>(out[0]), *lse = host<S>(out[1]);
    check_labels(label, labels, w, rows, classes);
    parallel_ranges(rows, row_grain(classes), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* x = logits + r * step;
        lse[r] = row_lse(x, r + 1 < rows ? x + step : x);
        loss[r] = w[r] == 0 ? S(0) : w[r] * (lse[r] - load_one(x + label(labels, r)));
      }
    });
  }

  // The sum waits for the CPU and the maximum for the memory: the sum fetches the next row
  // meanwhile.
  S row_lse(const T* x, const T* next) const {
    S top = row_max(x, classes);
    V t = splat(top);
    return top + log_one(row_sum<V>(classes, [&](int64_t i, auto n) {
             __builtin_prefetch(next + i, 0, 2);
             return exp(load(x + i, n) - t);
           }));
  }

  Integers label;
  int64_t rows, classes;
  int64_t step;  // from a row to the next, in elements
};

template <class T>
struct CrossEntropyGrad : Kernel {
  using V = Vec<T>;
  using S = Scalar<T>;
  explicit CrossEntropyGrad(const orr_op& op)
      : label(op, 2),
        rows(op.in[1].dims[0]),
        classes(op.in[1].dims[1]),
        step(op.in[1].strides[0]),
        step_out(op.out[0].strides[0]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const S *dloss = host<S>(in[0]), *w = host<S>(in[3]), *lse = host<S>(in[4]);
    const void* labels = host<void>(in[2]);
    check_labels(label, labels, w, rows, classes);
    parallel_ranges(rows, row_grain(classes), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* x = host<T>(in[1]) + r * step;
        T* dx = host<T>(out[0]) + r * step_out;
        if (w[r] == 0)
          __builtin_memset(dx, 0, size_t(classes) * sizeof(T));
        else
          row(x, dx, dloss[r] * w[r], lse[r], label(labels, r));
      }
    });
  }

  void row(const T* x, T* dx, S scale, S lse, int64_t label) const {
    V s = splat(scale), l = splat(lse);
    S hit = exp_one(load_one(x + label) - lse);  // before dx, which may be x, is written
    each_vector(0, classes,
                [&](int64_t i, auto n) { store(dx + i, s * exp(load(x + i, n) - l), n); });
    store_one(dx + label, scale * (hit - S(1)));
  }

  Integers label;
  int64_t rows, classes;
  int64_t step, step_out;  // from a row to the next, in elements
};

}  // namespace

Kernel* make_cross_entropy(const orr_op& op) { return make_real<CrossEntropy>(op.in[0].dtype, op); }
Kernel* make_cross_entropy_grad(const orr_op& op) {
  return make_real<CrossEntropyGrad>(op.in[1].dtype, op);
}

}  // namespace orr_cpu::ORR_ISA
