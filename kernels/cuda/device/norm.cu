// SPDX-License-Identifier: Apache-2.0
//
// layernorm and rmsnorm with their gradients, one team for each row. The bits are those of
// kernels/reference.
#include "row_args.h"
#include "row_team.h"

namespace orr_cuda {
namespace {

template <class T>
__device__ const T* staged_row(const Team& team, const RowArgs& a, int slot, const void* x) {
  return stage(team, a.rows, slot, static_cast<const T*>(x) + team.row * a.rows.columns);
}

// The team's row, which is normalised: of x, or of a sum. The sum is made where x would be staged,
// and copied from there, or in its place in memory if rows are not staged.
template <class T>
__device__ const T* row_of(const Team& team, const RowArgs& a) {
  using A = Acc<T>;
  if (!a.added) {
    const T* row = staged_row<T>(team, a, 0, a.x);
    team.sync();
    return row;
  }
  const int n = a.rows.columns;
  const int64_t at = team.row * n;
  const T *x = static_cast<const T*>(a.x) + at, *added = static_cast<const T*>(a.added) + at;
  T* const sum = static_cast<T*>(a.sum) + at;
  T* const to = a.rows.slot_bytes == 0
                    ? sum
                    : const_cast<T*>(place_of(a.rows, int(threadIdx.x) / team.size, 0, x));
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
        team, n, sum, [](int, A v) { return v; }, const_cast<const T*>(to));
  return to;
}

template <class T>
__device__ void layernorm(const RowArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = row_of<T>(team, a);
  const A inverse = A(1) / A(n);
  const A mean = row_sum<A>(team, n, [=](int c) { return get(x[c]); }) * inverse;
  const A squares =
      row_sum<A>(team, n, [=](int c) { return (get(x[c]) - mean) * (get(x[c]) - mean); });
  const A rstd = A(1) / sqrt(squares * inverse + A(a.eps));
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n,
      [=](int, A v, A w, A b) { return (v - mean) * rstd * w + b; }, x, static_cast<const T*>(a.w),
      static_cast<const T*>(a.b));
  if (team.rank != 0) return;
  static_cast<A*>(a.mean)[team.row] = mean;
  static_cast<A*>(a.rstd)[team.row] = rstd;
}

template <class T>
__device__ void rmsnorm(const RowArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = row_of<T>(team, a);
  const A squares = row_sum<A>(team, n, [=](int c) { return get(x[c]) * get(x[c]); });
  const A rstd = A(1) / sqrt(squares / A(n) + A(a.eps));
  map_row(
      team, n, static_cast<T*>(a.y) + team.row * n, [=](int, A v, A w) { return v * rstd * w; }, x,
      static_cast<const T*>(a.w));
  if (team.rank == 0) static_cast<A*>(a.rstd)[team.row] = rstd;
}

// The input gradient of the team's row, into y: plus `added` if there is such a row. With a mean
// and a sum of g that are 0 the formula of layernorm gives the bits of rmsnorm's.
template <class T>
__device__ void grad_of_row(const Team& team, const RowArgs& a, const T* dy, const T* x, T* y,
                            const T* added) {
  using A = Acc<T>;
  const int n = a.rows.columns;
  const T* w = static_cast<const T*>(a.w);
  const A mean = a.mean ? static_cast<const A*>(a.mean)[team.row] : A(0);
  const A rstd = static_cast<const A*>(a.rstd)[team.row];
  A g_mean = 0;
  if (a.mean) g_mean = row_sum<A>(team, n, [=](int c) { return get(dy[c]) * get(w[c]); }) / A(n);
  const A gx_mean =
      row_sum<A>(team, n,
                 [=](int c) { return get(dy[c]) * get(w[c]) * ((get(x[c]) - mean) * rstd); }) /
      A(n);
  const auto dx = [=](A d, A v, A weight) {
    return rstd * (d * weight - g_mean - (v - mean) * rstd * gx_mean);
  };
  if (!y) return;
  if (!added)
    return map_row(
        team, n, y, [=](int, A d, A v, A weight) { return dx(d, v, weight); }, dy, x, w);
  map_row(
      team, n, y,
      [=](int, A d, A v, A weight, A r) { return get(rounded<T>(dx(d, v, weight))) + r; }, dy, x, w,
      added);
}

// layernorm_grad and rmsnorm_grad.
template <class T>
__device__ void input_grad(const RowArgs& a) {
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const T* dy = staged_row<T>(team, a, 0, a.dy);
  const T* x = staged_row<T>(team, a, 1, a.x);
  team.sync();
  grad_of_row<T>(team, a, dy, x, static_cast<T*>(a.y) + team.row * a.rows.columns, nullptr);
}

// Adds dw, db and y of the rows [row, row + count), which the block's teams have staged in order,
// to sums[3, columns]. A thread adds always the same columns.
template <class T>
__device__ void add_rows(const NormGradArgs& a, int64_t row, int count, Acc<T>* sums) {
  using A = Acc<T>;
  const int n = a.rows.columns;
  const T *dy = static_cast<const T*>(a.dy) + row * n, *x = static_cast<const T*>(a.x) + row * n;
  const T* y = static_cast<const T*>(a.y) + row * n;
  const A *mean = static_cast<const A*>(a.mean), *rstd = static_cast<const A*>(a.rstd) + row;
  for (int c = int(threadIdx.x); c < n; c += int(blockDim.x)) {
    A dw = sums[c], db = sums[n + c], all = sums[2 * n + c];
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
      const A d = get(place_of(a.rows, i, 0, dy + i * n)[c]);
      const A v = get(place_of(a.rows, i, 1, x + i * n)[c]);
      dw = dw + d * (v - (mean ? mean[row + i] : A(0))) * rstd[i];
      db = db + d;
      if (a.sums_y) all = all + get(y[i * n + c]);
    }
    sums[c] = dw, sums[n + c] = db, sums[2 * n + c] = all;
  }
}

template <class T>
__device__ void store_sums(const NormGradArgs& a, const Acc<T>* sums) {
  const int n = a.rows.columns;
  for (int c = int(threadIdx.x); c < n; c += int(blockDim.x)) {
    const int64_t to = int64_t(blockIdx.x) * n + c;
    store_fold<T>(a.sums, 0, to, sums[c]);
    if (a.mean) store_fold<T>(a.sums, 1, to, sums[n + c]);
    if (a.sums_y) store_fold<T>(a.sums, a.mean ? 2 : 1, to, sums[2 * n + c]);
  }
}

template <class T>
__device__ void norm_grad(const NormGradArgs& a) {
  using A = Acc<T>;
  Team team(a.rows);
  const int n = a.rows.columns, teams = int(blockDim.x) / team.size;
  const int index = int(threadIdx.x) / team.size;
  const int64_t begin = blockIdx.x % a.entries * ORR_SUM_ROWS, left = a.length - begin;
  const int64_t first = blockIdx.x / a.entries * a.length + begin;
  const int count = left < ORR_SUM_ROWS ? int(left) : ORR_SUM_ROWS;
  A* const sums = reinterpret_cast<A*>(dynamic_shared() + teams * a.rows.team_bytes);
  for (int c = int(threadIdx.x); c < 3 * n; c += int(blockDim.x)) sums[c] = 0;
  __syncthreads();
  for (int r = 0; r < count; r += teams) {
    const int here = count - r < teams ? count - r : teams;
    const bool has_row = index < here;
    team.row = first + r + (has_row ? index : 0);  // without a row: joins in, and stores nothing
    const T* dy = staged_row<T>(team, a, 0, a.dy);
    const T* x = staged_row<T>(team, a, 1, a.x);
    team.sync();
    T* const y = static_cast<T*>(a.y) + team.row * n;
    const T* const added = static_cast<const T*>(a.added);
    grad_of_row<T>(team, a, dy, x, has_row ? y : nullptr, added ? added + team.row * n : nullptr);
    __syncthreads();
    add_rows<T>(a, first + r, here, sums);
    __syncthreads();
  }
  store_sums<T>(a, sums);
}

}  // namespace

ORR_REAL_KERNELS(layernorm, kRowThreads, RowArgs)
ORR_REAL_KERNELS(rmsnorm, kRowThreads, RowArgs)
ORR_REAL_KERNELS(input_grad, kRowThreads, RowArgs)
ORR_REAL_KERNELS(norm_grad, kRowThreads, NormGradArgs)

}  // namespace orr_cuda
