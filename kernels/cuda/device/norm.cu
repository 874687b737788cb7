// SPDX-License-Identifier: Apache-2.0
//
// layernorm and rmsnorm, forward and input gradient, one team for each row. The bits are those of
// kernels/reference.
#include "norm.h"
#include "row_team.h"

namespace orr_cuda {
namespace {

template <class T>
__device__ const T* staged_row(const Team& team, const NormArgs& a, int slot, const void* x) {
  return stage(team, a.rows, slot, static_cast<const T*>(x) + team.row * a.rows.columns);
}

template <class T>
__device__ void layernorm(const NormArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = staged_row<T>(team, a, 0, a.x);
  team.sync();
  const A inverse = A(1) / A(n);
  const A mean = row_sum<A>(team, n, [=](int c) { return get(x[c]); }) * inverse;
  const A squares =
      row_sum<A>(team, n, [=](int c) { return (get(x[c]) - mean) * (get(x[c]) - mean); });
  const A rstd = A(1) / root_of(squares * inverse + A(a.eps));
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n,
      [=](int, A v, A w, A b) { return (v - mean) * rstd * w + b; }, x, static_cast<const T*>(a.w),
      static_cast<const T*>(a.b));
  if (team.rank != 0) return;
  static_cast<A*>(a.mean)[team.row] = mean;
  static_cast<A*>(a.rstd)[team.row] = rstd;
}

template <class T>
__device__ void layernorm_grad(const NormArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* dy = staged_row<T>(team, a, 0, a.dy);
  const T* x = staged_row<T>(team, a, 1, a.x);
  const T* w = static_cast<const T*>(a.w);
  const A mean = static_cast<const A*>(a.mean)[team.row];
  const A rstd = static_cast<const A*>(a.rstd)[team.row];
  team.sync();
  const A g_mean = row_sum<A>(team, n, [=](int c) { return get(dy[c]) * get(w[c]); }) / A(n);
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

template <class T>
__device__ void rmsnorm(const NormArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = staged_row<T>(team, a, 0, a.x);
  team.sync();
  const A squares = row_sum<A>(team, n, [=](int c) { return get(x[c]) * get(x[c]); });
  const A rstd = A(1) / root_of(squares / A(n) + A(a.eps));
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n, [=](int, A v, A w) { return v * rstd * w; }, x,
      static_cast<const T*>(a.w));
  if (team.rank == 0) static_cast<A*>(a.rstd)[team.row] = rstd;
}

template <class T>
__device__ void rmsnorm_grad(const NormArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* dy = staged_row<T>(team, a, 0, a.dy);
  const T* x = staged_row<T>(team, a, 1, a.x);
  const T* w = static_cast<const T*>(a.w);
  const A rstd = static_cast<const A*>(a.rstd)[team.row];
  team.sync();
  const A gx_mean =
      row_sum<A>(team, n, [=](int c) { return get(dy[c]) * get(w[c]) * (get(x[c]) * rstd); }) /
      A(n);
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n,
      [=](int, A d, A v, A weight) { return rstd * (d * weight - v * rstd * gx_mean); }, dy, x, w);
}

}  // namespace

ORR_REAL_KERNELS(layernorm, kRowThreads, NormArgs)
ORR_REAL_KERNELS(layernorm_grad, kRowThreads, NormArgs)
ORR_REAL_KERNELS(rmsnorm, kRowThreads, NormArgs)
ORR_REAL_KERNELS(rmsnorm_grad, kRowThreads, NormArgs)

}  // namespace orr_cuda
