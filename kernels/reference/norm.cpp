// SPDX-License-Identifier: Apache-2.0
//
// layernorm and rmsnorm, forward and input gradient, by rows.
#include "op.h"
#include "rows.h"
#include "sums.h"

namespace reference {
namespace {

// Shapes of an op whose tensors are rows [R,C], then statistics [R], and a weight [C].
void check_rows(const orr_op& op, int rows_in) {
  require_rank(op.in[0], 2, "x");
  require_real(op.in[0], "x");
  require(op.in[0].dims[1] > 0, "rows must not be empty");
  for (int i = 1; i < rows_in; ++i) require_same(op, op.in[i], "x");
  require_vector(op.in[rows_in], op.in[0].dtype, op.in[0].dims[1], "w");
  require_same(op, op.out[0], "the first output");
}

void check_statistics(const orr_op& op, const orr_tensor* first, int n) {
  for (int i = 0; i < n; ++i)
    require_vector(first[i], wide_dtype(op.in[0].dtype), op.in[0].dims[0], "mean or rstd");
}

void check_layernorm(const orr_op& op) {
  require_counts(op, 3, 3);
  check_rows(op, 1);
  require_vector(op.in[2], op.in[0].dtype, op.in[0].dims[1], "b");
  check_statistics(op, op.out + 1, 2);
}

void check_layernorm_grad(const orr_op& op) {
  require_counts(op, 5, 1);
  check_rows(op, 2);
  check_statistics(op, op.in + 3, 2);
}

void check_rmsnorm(const orr_op& op) {
  require_counts(op, 2, 2);
  check_rows(op, 1);
  check_statistics(op, op.out + 1, 1);
}

void check_rmsnorm_grad(const orr_op& op) {
  require_counts(op, 4, 1);
  check_rows(op, 2);
  check_statistics(op, op.in + 3, 1);
}

void run_layernorm(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t n = call.op.in[0].dims[1];
    A inverse = A(1) / A(n), eps = A(orr::attr_real(call.op, "eps", 1e-5));
    orr::parallel_for(call.op.in[0].dims[0], [&](int64_t r) {
      const T *x = call.input<T>(0) + r * n, *w = call.input<T>(1), *b = call.input<T>(2);
      T* y = call.output<T>(0) + r * n;
      A mean = row_sum<A>(n, [=](int64_t c) { return get(x[c]); }) * inverse;
      auto square = [=](int64_t c) { return (get(x[c]) - mean) * (get(x[c]) - mean); };
      A rstd = A(1) / std::sqrt(row_sum<A>(n, square) * inverse + eps);
      for (int64_t c = 0; c < n; ++c) put(y[c], (get(x[c]) - mean) * rstd * get(w[c]) + get(b[c]));
      call.output<A>(1)[r] = mean;
      call.output<A>(2)[r] = rstd;
    });
  });
}

void run_layernorm_grad(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t n = call.op.in[0].dims[1];
    orr::parallel_for(call.op.in[0].dims[0], [&](int64_t r) {
      const T *dy = call.input<T>(0) + r * n, *x = call.input<T>(1) + r * n, *w = call.input<T>(2);
      A mean = call.input<A>(3)[r], rstd = call.input<A>(4)[r];
      T* dx = call.output<T>(0) + r * n;
      auto xh = [=](int64_t c) { return (get(x[c]) - mean) * rstd; };
      auto g = [=](int64_t c) { return get(dy[c]) * get(w[c]); };
      A g_mean = row_sum<A>(n, g) / A(n);
      A gx_mean = row_sum<A>(n, [=](int64_t c) { return g(c) * xh(c); }) / A(n);
      for (int64_t c = 0; c < n; ++c) put(dx[c], rstd * (g(c) - g_mean - xh(c) * gx_mean));
    });
  });
}

void run_rmsnorm(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t n = call.op.in[0].dims[1];
    A eps = A(orr::attr_real(call.op, "eps", 1e-5));
    orr::parallel_for(call.op.in[0].dims[0], [&](int64_t r) {
      const T *x = call.input<T>(0) + r * n, *w = call.input<T>(1);
      T* y = call.output<T>(0) + r * n;
      A squares = row_sum<A>(n, [=](int64_t c) { return get(x[c]) * get(x[c]); });
      A rstd = A(1) / std::sqrt(squares / A(n) + eps);
      for (int64_t c = 0; c < n; ++c) put(y[c], get(x[c]) * rstd * get(w[c]));
      call.output<A>(1)[r] = rstd;
    });
  });
}

void run_rmsnorm_grad(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t n = call.op.in[0].dims[1];
    orr::parallel_for(call.op.in[0].dims[0], [&](int64_t r) {
      const T *dy = call.input<T>(0) + r * n, *x = call.input<T>(1) + r * n, *w = call.input<T>(2);
      A rstd = call.input<A>(3)[r];
      T* dx = call.output<T>(0) + r * n;
      auto xh = [=](int64_t c) { return get(x[c]) * rstd; };
      auto g = [=](int64_t c) { return get(dy[c]) * get(w[c]); };
      A gx_mean = row_sum<A>(n, [=](int64_t c) { return g(c) * xh(c); }) / A(n);
      for (int64_t c = 0; c < n; ++c) put(dx[c], rstd * (g(c) - xh(c) * gx_mean));
    });
  });
}

}  // namespace

const Family layernorm_family = {
    "layernorm", "reference.layernorm.1", check_layernorm, run_layernorm, nullptr, 0, 0, nullptr};
const Family layernorm_grad_family = {"layernorm_grad",
                                      "reference.layernorm.1",
                                      check_layernorm_grad,
                                      run_layernorm_grad,
                                      nullptr,
                                      0,
                                      0,
                                      nullptr};
const Family rmsnorm_family = {
    "rmsnorm", "reference.rmsnorm.1", check_rmsnorm, run_rmsnorm, nullptr, 0, 0, nullptr};
const Family rmsnorm_grad_family = {
    "rmsnorm_grad", "reference.rmsnorm.1", check_rmsnorm_grad, run_rmsnorm_grad, nullptr, 0, 0,
    nullptr};

}  // namespace reference
