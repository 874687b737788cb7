// SPDX-License-Identifier: Apache-2.0
//
// softmax and its gradient, one team for each row.
#include "row_args.h"
#include "row_team.h"

namespace orr_cuda {
namespace {

template <class T>
__device__ void softmax(const RowArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = stage<T>(team, a.rows, 0, a.x);
  team.sync();
  const A top = max_of_all(team, max_of_mine(team, n, x, A(-HUGE_VALF)));
  const A sum = row_sum<A>(team, n, [=](int c) { return exp_for<T>(get(x[c]) - top); });
  const A scale = A(1) / sum;
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n,
      [=](int, A v) { return exp_for<T>(v - top) * scale; }, x);
}

template <class T>
__device__ void softmax_grad(const RowArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T *dy = stage<T>(team, a.rows, 0, a.dy), *y = stage<T>(team, a.rows, 1, a.x);
  team.sync();
  const A sum = row_sum<A>(team, n, [=](int c) { return get(dy[c]) * get(y[c]); });
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n, [=](int, A g, A v) { return v * (g - sum); },
      dy, y);
}

}  // namespace

ORR_REAL_KERNELS(softmax, kRowThreads, RowArgs)
ORR_REAL_KERNELS(softmax_grad, kRowThreads, RowArgs)

}  // namespace orr_cuda
