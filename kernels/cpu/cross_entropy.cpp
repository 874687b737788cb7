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

// A row of the gradient; dx may be x.
template <class T, class S>
void slope(const T* x, T* dx, int64_t classes, S w, S dloss, S lse, int64_t label) {
  if (w == 0) return void(__builtin_memset(dx, 0, size_t(classes) * sizeof(T)));
  const S scale = dloss * w;
  const Vec<T> s = splat(scale), l = splat(lse);
  const S hit = exp_one(load_one(x + label) - lse);  // before dx is written
  each_vector(0, classes,
              [&](int64_t i, auto n) { store(dx + i, s * exp(load(x + i, n) - l), n); });
  store_one(dx + label, scale * (hit - S(1)));
}

// With dloss also the gradient, of each row while it is in cache.
template <class T>
struct CrossEntropy : Kernel {
  using V = Vec<T>;
  using S = Scalar<T>;
  explicit CrossEntropy(const orr_op& op)
      : label(op, 1),
        rows(op.in[0].dims[0]),
        classes(op.in[0].dims[1]),
        step(op.in[0].strides[0]),
        step_out(op.n_out == 3 ? op.out[2].strides[0] : 0),
        both(op.n_out == 3) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* logits = host<T>(in[0]);
    const void* labels = host<void>(in[1]);
    const S *w = host<S>(in[2]), *dloss = both ? host<S>(in[3]) : nullptr;
    S *loss = host<S>(out[0]), *lse = host<S>(out[1]);
    T* dlogits = both ? host<T>(out[2]) : nullptr;
    check_labels(label, labels, w, rows, classes);
    parallel_ranges(rows, row_grain(classes), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* x = logits + r * step;
        const int64_t hit = w[r] == 0 ? 0 : label(labels, r);
        lse[r] = row_lse(x, r + 1 < rows ? x + step : x);
        loss[r] = w[r] == 0 ? S(0) : w[r] * (lse[r] - load_one(x + hit));
        if (both) slope(x, dlogits + r * step_out, classes, w[r], dloss[r], lse[r], hit);
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
  int64_t step, step_out;  // from a row to the next, in elements
  bool both;
};

template <class T>
struct CrossEntropyGrad : Kernel {
  using S = Scalar<T>;
  explicit CrossEntropyGrad(const orr_op& op)
      : label(op, 2),
        rows(op.in[1].dims[0]),
        classes(op.in[1].dims[1]),
        step(op.in[1].strides[0]),
        step_out(op.out[0].strides[0]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const S *dloss = host<S>(in[0]), *w = host<S>(in[3]), *lse = host<S>(in[4]);
    const T* logits = host<T>(in[1]);
    const void* labels = host<void>(in[2]);
    T* dlogits = host<T>(out[0]);
    check_labels(label, labels, w, rows, classes);
    parallel_ranges(rows, row_grain(classes), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r)
        slope(logits + r * step, dlogits + r * step_out, classes, w[r], dloss[r], lse[r],
              w[r] == 0 ? 0 : label(labels, r));
    });
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
