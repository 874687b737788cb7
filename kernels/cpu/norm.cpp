// SPDX-License-Identifier: Apache-2.0
//
// layernorm, rmsnorm and their input gradients, row by row.
#include "rows.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

struct Rows : Kernel {
  explicit Rows(const orr_op& op) : rows(op.in[0].dims[0]), columns(op.in[0].dims[1]) {}
  template <class Row>
  ORR_INLINE void each_row(Row&& row) const {
    parallel_ranges(rows, row_grain(columns), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) row(r, r * columns);
    });
  }
  int64_t rows, columns;
};

template <class T>
struct LayerNorm : Rows {
  using V = Vec<T>;
  using S = Scalar<T>;
  explicit LayerNorm(const orr_op& op) : Rows(op), eps(S(attr_real(op, "eps", 1e-5))) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T *w = host<T>(in[1]), *b = host<T>(in[2]);
    S *means = host<S>(out[1]), *rstds = host<S>(out[2]);
    const S inverse = S(1) / S(columns);
    each_row([&](int64_t r, int64_t at) {
      const T* x = host<T>(in[0]) + at;
      T* y = host<T>(out[0]) + at;
      S mean = row_sum<V>(columns, [&](int64_t i, auto n) { return load(x + i, n); }) * inverse;
      V m = splat(mean);
      S squares = row_sum<V>(columns, [&](int64_t i, auto n) {
        V d = load(x + i, n) - m;
        return d * d;
      });
      S rstd = S(1) / sqrt_one(squares * inverse + eps);
      V s = splat(rstd);
      each_vector(0, columns, [&](int64_t i, auto n) {
        store(y + i, (load(x + i, n) - m) * s * load(w + i, n) + load(b + i, n), n);
      });
      means[r] = mean;
      rstds[r] = rstd;
    });
  }
  S eps;
};

template <class T>
struct LayerNormGrad : Rows {
  using V = Vec<T>;
  using S = Scalar<T>;
  using Rows::Rows;

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* w = host<T>(in[2]);
    const S *means = host<S>(in[3]), *rstds = host<S>(in[4]);
    each_row([&](int64_t r, int64_t at) {
      const T *dy = host<T>(in[0]) + at, *x = host<T>(in[1]) + at;
      T* dx = host<T>(out[0]) + at;
      V mean = splat(means[r]), rstd = splat(rstds[r]);
      auto g = [&](int64_t i, auto n) { return load(dy + i, n) * load(w + i, n); };
      auto xh = [&](int64_t i, auto n) { return (load(x + i, n) - mean) * rstd; };
      V a = splat(row_sum<V>(columns, g) / S(columns));
      V b = splat(row_sum<V>(columns, [&](int64_t i, auto n) { return g(i, n) * xh(i, n); }) /
                  S(columns));
      each_vector(0, columns, [&](int64_t i, auto n) {
        store(dx + i, rstd * (g(i, n) - a - xh(i, n) * b), n);
      });
    });
  }
};

template <class T>
struct RmsNorm : Rows {
  using V = Vec<T>;
  using S = Scalar<T>;
  explicit RmsNorm(const orr_op& op) : Rows(op), eps(S(attr_real(op, "eps", 1e-5))) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* w = host<T>(in[1]);
    S* rstds = host<S>(out[1]);
    each_row([&](int64_t r, int64_t at) {
      const T* x = host<T>(in[0]) + at;
      T* y = host<T>(out[0]) + at;
      S squares = row_sum<V>(columns, [&](int64_t i, auto n) {
        V v = load(x + i, n);
        return v * v;
      });
      rstds[r] = S(1) / sqrt_one(squares / S(columns) + eps);
      V s = splat(rstds[r]);
      each_vector(0, columns,
                  [&](int64_t i, auto n) { store(y + i, load(x + i, n) * s * load(w + i, n), n); });
    });
  }
  S eps;
};

template <class T>
struct RmsNormGrad : Rows {
  using V = Vec<T>;
  using S = Scalar<T>;
  using Rows::Rows;

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* w = host<T>(in[2]);
    const S* rstds = host<S>(in[3]);
    each_row([&](int64_t r, int64_t at) {
      const T *dy = host<T>(in[0]) + at, *x = host<T>(in[1]) + at;
      T* dx = host<T>(out[0]) + at;
      V rstd = splat(rstds[r]);
      auto g = [&](int64_t i, auto n) { return load(dy + i, n) * load(w + i, n); };
      auto xh = [&](int64_t i, auto n) { return load(x + i, n) * rstd; };
      V b = splat(row_sum<V>(columns, [&](int64_t i, auto n) { return g(i, n) * xh(i, n); }) /
                  S(columns));
      each_vector(0, columns,
                  [&](int64_t i, auto n) { store(dx + i, rstd * (g(i, n) - xh(i, n) * b), n); });
    });
  }
};

}  // namespace

Kernel* make_layernorm(const orr_op& op) { return make_real<LayerNorm>(op.in[0].dtype, op); }
Kernel* make_layernorm_grad(const orr_op& op) {
  return make_real<LayerNormGrad>(op.in[0].dtype, op);
}
Kernel* make_rmsnorm(const orr_op& op) { return make_real<RmsNorm>(op.in[0].dtype, op); }
Kernel* make_rmsnorm_grad(const orr_op& op) { return make_real<RmsNormGrad>(op.in[0].dtype, op); }

}  // namespace orr_cpu::ORR_ISA
