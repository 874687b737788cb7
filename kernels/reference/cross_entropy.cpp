// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy and its gradient. Labels are checked before any row is computed, so that the first
// bad row is named whatever the threads do; a row of weight 0 is padding and its label is not read.
#include <orrery/sdk/kind_checks.hpp>

#include "op.h"
#include "rows.h"
#include "sums.h"

namespace reference {
namespace {

template <class A>
void check_labels(const Call& call, int labels, const A* w, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t label = call.integer(labels, r);
    if (w[r] != 0 && (label < 0 || label >= classes))
      throw orr::Error(ORR_INVALID, "cross_entropy: label " + std::to_string(label) + " in row " +
                                        std::to_string(r) + " is outside the " +
                                        std::to_string(classes) + " classes (0.." +
                                        std::to_string(classes - 1) + ")");
  }
}

// One row of the gradient; dx may be x.
template <class T, class A>
void slope(const T* x, T* dx, int64_t n, A scale, A lse, int64_t label) {
  for (int64_t c = 0; c < n; ++c) put(dx[c], scale * (exp_of(get(x[c]) - lse) - A(c == label)));
}

void run_forward(const Call& call) {
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t rows = call.op.in[0].dims[0], n = call.op.in[0].dims[1];
    const A* w = call.input<A>(2);
    check_labels(call, 1, w, rows, n);
    orr::parallel_for(rows, [&](int64_t r) {
      const T* x = call.input<T>(0) + r * call.op.in[0].strides[0];
      A top = row_max(x, n);
      A lse = top + log_of(row_sum<A>(n, [=](int64_t c) { return exp_of(get(x[c]) - top); }));
      call.output<A>(0)[r] = w[r] == 0 ? A(0) : w[r] * (lse - get(x[call.integer(1, r)]));
      call.output<A>(1)[r] = lse;
      if (call.op.n_in < 4) return;
      T* dx = call.output<T>(2) + r * call.op.out[2].strides[0];
      if (w[r] == 0) return std::fill(dx, dx + n, T{});
      slope(x, dx, n, call.input<A>(3)[r] * w[r], lse, call.integer(1, r));
    });
  });
}

void run_grad(const Call& call) {
  with_real(call.op.in[1].dtype, [&]<class T>(Type<T>) {
    using A = Acc<T>;
    int64_t rows = call.op.in[1].dims[0], n = call.op.in[1].dims[1];
    const A *dloss = call.input<A>(0), *w = call.input<A>(3), *lse = call.input<A>(4);
    check_labels(call, 2, w, rows, n);
    orr::parallel_for(rows, [&](int64_t r) {
      const T* x = call.input<T>(1) + r * call.op.in[1].strides[0];
      T* dx = call.output<T>(0) + r * call.op.out[0].strides[0];
      if (w[r] == 0) return std::fill(dx, dx + n, T{});
      slope(x, dx, n, dloss[r] * w[r], lse[r], call.integer(2, r));
    });
  });
}

int32_t inplace_logits(const orr_op&) { return 2; }

}  // namespace

const Family cross_entropy_family = {
    "cross_entropy", "reference.cross_entropy.1", require_cross_entropy, run_forward, nullptr, 1, 4,
    nullptr};
const Family cross_entropy_grad_family = {"cross_entropy_grad",
                                          "reference.cross_entropy.1",
                                          require_cross_entropy_grad,
                                          run_grad,
                                          nullptr,
                                          2,
                                          1,
                                          inplace_logits};

}  // namespace reference
