// SPDX-License-Identifier: Apache-2.0
//
// norm_param_grad: the gradients of a norm's weight and bias, column sums over the batch by leaf.
#include "leaves.h"
#include "op.h"
#include "rows.h"
#include "sums.h"

namespace reference {
namespace {

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

void check(const orr_op& op) {
  bool rms = is_rms(op);
  require_counts(op, rms ? 3 : 4, rms ? 1 : 2);
  require_rank(op.in[0], 2, "dy");
  require_real(op.in[0], "dy");
  require_same(op, op.in[1], "x");
  for (int i = 2; i < op.n_in; ++i)
    require_vector(op.in[i], wide_dtype(op.in[0].dtype), op.in[0].dims[0], "mean or rstd");
  require_leaves(op, op.in[0].dims[0]);
  for (int i = 0; i < op.n_out; ++i) {
    require_sum(op.out[i], op.in[0].dtype, "dw or db");
    require_dtype(op.out[i], op.out[0].dtype, "dw and db");
    require_nodes(op, op.out[i], {op.in[0].dims[1]}, "dw or db");
  }
}

uint64_t workspace(const orr_op& op) {
  return leaves_workspace(op, op.in[0].dims[1], op.out[0].dtype);
}

// Output `which` = the column sums of term(row, column).
template <class T, class Y, class Term>
void sum_columns(const Call& call, int which, Term term) {
  int64_t columns = call.op.in[0].dims[1], length = call.op.in[0].dims[0] / Leaves(call.op).n;
  auto leaf = [=](int64_t i, Y* to) {
    orr::parallel_for((columns + kColumns - 1) / kColumns, [=](int64_t tile) {
      int64_t c0 = tile * kColumns, n = std::min<int64_t>(kColumns, columns - c0);
      Acc<T> total[kColumns];
      column_sum(i * length, length, n, total,
                 [=](int64_t r, int64_t c) { return term(r, c0 + c); });
      for (int64_t c = 0; c < n; ++c) put(to[c0 + c], total[c]);
    });
  };
  sum_leaves(call.op, call.output<Y>(which), columns, reinterpret_cast<Y*>(call.workspace), leaf);
}

void run(const Call& call) {
  with_real_sum(call.op.in[0].dtype, call.op.out[0].dtype, [&]<class T, class Y>(Type<T>, Type<Y>) {
    using A = Acc<T>;
    int64_t n = call.op.in[0].dims[1];
    const T *dy = call.input<T>(0), *x = call.input<T>(1);
    const A* rstd = call.input<A>(call.op.n_in - 1);
    if (is_rms(call.op))
      return sum_columns<T, Y>(call, 0, [=](int64_t r, int64_t c) {
        return get(dy[r * n + c]) * get(x[r * n + c]) * rstd[r];
      });
    const A* mean = call.input<A>(2);
    sum_columns<T, Y>(call, 0, [=](int64_t r, int64_t c) {
      return get(dy[r * n + c]) * (get(x[r * n + c]) - mean[r]) * rstd[r];
    });
    sum_columns<T, Y>(call, 1, [=](int64_t r, int64_t c) { return get(dy[r * n + c]); });
  });
}

}  // namespace

const Family norm_param_grad_family = {
    "norm_param_grad", "reference.norm_param_grad.1", check, run, workspace, 0, 0, nullptr};

}  // namespace reference
