// SPDX-License-Identifier: Apache-2.0
//
// softmax and its gradient, by rows.
#include "op.h"
#include "rows.h"
#include "sums.h"

namespace reference {
namespace {

void check(const orr_op& op, int n_in) {
  require_counts(op, n_in, 1);
  require_rank(op.in[0], 2, "x");
  require_real(op.in[0], "x");
  require_same(op, op.in[n_in - 1], "y");
  require_same(op, op.out[0], "the output");
}

void check_forward(const orr_op& op) { check(op, 1); }
void check_grad(const orr_op& op) { check(op, 2); }

void run_forward(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t rows = call.op.in[0].dims[0], n = call.op.in[0].dims[1];
    const T* x_all = call.input<T>(0);
    T* y_all = call.output<T>(0);
    orr::parallel_for(rows, [=](int64_t r) {
      const T* x = x_all + r * n;
      A top = row_max(x, n);
      A scale = A(1) / row_sum<A>(n, [=](int64_t c) { return exp_of(get(x[c]) - top); });
      for (int64_t c = 0; c < n; ++c) put(y_all[r * n + c], exp_of(get(x[c]) - top) * scale);
    });
  });
}

void run_grad(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t rows = call.op.in[0].dims[0], n = call.op.in[0].dims[1];
    const T *dy_all = call.input<T>(0), *y_all = call.input<T>(1);
    T* dx_all = call.output<T>(0);
    orr::parallel_for(rows, [=](int64_t r) {
      const T *dy = dy_all + r * n, *y = y_all + r * n;
      A sum = row_sum<A>(n, [=](int64_t c) { return get(dy[c]) * get(y[c]); });
      for (int64_t c = 0; c < n; ++c) put(dx_all[r * n + c], get(y[c]) * (get(dy[c]) - sum));
    });
  });
}

}  // namespace

const Family softmax_family = {
    "softmax", "reference.softmax.1", check_forward, run_forward, nullptr, 0, 0, nullptr};
const Family softmax_grad_family = {
    "softmax_grad", "reference.softmax.1", check_grad, run_grad, nullptr, 0, 0, nullptr};

}  // namespace reference
