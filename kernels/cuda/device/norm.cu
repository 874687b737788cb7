// SPDX-License-Identifier: Apache-2.0
//
// layernorm and rmsnorm with the gradients of their inputs, one team for each row. The bits are
// those of kernels/reference.
#include "row_args.h"
#include "row_team.h"

namespace orr_cuda {
namespace {

// The team's row, which is normalised: of x, or of a sum. The sum is made where x would be staged,
// and copied from there, or in its place in memory if rows are not staged.
template <class T>
__device__ const T* row_of(const Team& team, const RowArgs& a) {
  using A = Acc<T>;
  if (!a.added) {
    const T* row = stage<T>(team, a.rows, 0, a.x);
    team.sync();
    return row;
  }
  const int n = a.rows.columns;
  const int64_t at = team.row * n;
  const T *x = static_cast<const T*>(a.x) + at, *added = static_cast<const T*>(a.added) + at;
  T* const sum = static_cast<T*>(a.sum) + at;
  T* const to = a.rows.slot_bytes == 0 ? sum : place_of(a.rows, team.index, 0, x);
  if (a.bias)
    map_row(
        team, n, to, [](int, A v, A r, A bias) { return get(rounded<T>(v + bias)) + r; }, x, added,
        static_cast<const T*>(a.bias));
  else
    map_row(
        team, n, to, [](int, A v, A r) { return v + r; }, x, added);
  team.sync();
  if (to != sum)
    map_row(
        team, n, sum, [](int, A v) { return v; }, to);
  return to;
}

// layernorm, or rmsnorm, which has no mean.
template <class T, bool centred>
__device__ void norm(const RowArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = row_of<T>(team, a);
  const A inverse = A(1) / A(n);
  A mean = 0;
  if (centred) mean = row_sum<A>(team, n, [=](int c) { return get(x[c]); }) * inverse;
  const A squares =
      row_sum<A>(team, n, [=](int c) { return (get(x[c]) - mean) * (get(x[c]) - mean); });
  const A rstd = A(1) / sqrt((centred ? squares * inverse : squares / A(n)) + A(a.eps));
  T* const y = static_cast<T*>(a.y) + team.row * n;
  const T* w = static_cast<const T*>(a.w);
  if constexpr (centred)
    map_row(
        team, n, y, [=](int, A v, A w, A b) { return (v - mean) * rstd * w + b; }, x, w,
        static_cast<const T*>(a.b));
  else
    map_row(
        team, n, y, [=](int, A v, A w) { return v * rstd * w; }, x, w);
  if (team.rank != 0) return;
  if (centred) static_cast<A*>(a.mean)[team.row] = mean;
  static_cast<A*>(a.rstd)[team.row] = rstd;
}
template <class T>
__device__ void layernorm(const RowArgs& a) {
  norm<T, true>(a);
}
template <class T>
__device__ void rmsnorm(const RowArgs& a) {
  norm<T, false>(a);
}

// layernorm_grad and rmsnorm_grad. With a mean and a sum of g that are 0 the formula of layernorm
// gives the bits of rmsnorm's.
template <class T>
__device__ void input_grad(const RowArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T *dy = stage<T>(team, a.rows, 0, a.dy), *x = stage<T>(team, a.rows, 1, a.x);
  const T* w = static_cast<const T*>(a.w);
  team.sync();
  const A mean = a.mean ? static_cast<const A*>(a.mean)[team.row] : A(0);
  const A rstd = static_cast<const A*>(a.rstd)[team.row];
  A g_mean = 0;
  if (a.mean) g_mean = row_sum<A>(team, n, [=](int c) { return get(dy[c]) * get(w[c]); }) / A(n);
  const A gx_mean =
      row_sum<A>(team, n,
                 [=](int c) { return get(dy[c]) * get(w[c]) * ((get(x[c]) - mean) * rstd); }) /
      A(n);
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n,
      [=](int, A d, A v, A weight) {
        return rstd * (d * weight - g_mean - (v - mean) * rstd * gx_mean);
      },
      dy, x, w);
}

}  // namespace

ORR_REAL_KERNELS(layernorm, kRowThreads, RowArgs)
ORR_REAL_KERNELS(rmsnorm, kRowThreads, RowArgs)
ORR_REAL_KERNELS(input_grad, kRowThreads, RowArgs)

}  // namespace orr_cuda
