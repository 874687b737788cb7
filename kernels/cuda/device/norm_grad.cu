// SPDX-License-Identifier: Apache-2.0
//
// norm_grad: the gradients of a norm's input, weight and bias, and the sums of the first as it is
// stored, in one pass over the rows. A block works on ORR_SUM_ROWS rows, a tile of which is in
// shared memory at a time. Eight threads add up what the gradient of a row needs, each in two
// neighbouring ones of the 16 lanes of ops.h. Then each thread goes over the tile's rows in its own
// columns. The bits are those of kernels/reference.
#include "fold_block.h"
#include "mma.h"
#include "packet.h"
#include "row_args.h"

namespace orr_cuda {
namespace {

constexpr int kTeam = kNormThreads / kNormTile;  // threads for the sums of a row

template <class A>
struct alignas(4 * sizeof(A)) RowFacts {
  A mean, rstd, g_mean, gx_mean;  // g = dy * w; gx = g times the normalised x
};

// What lies in shared memory: facts and partial sums of a tile's rows, the block's sums, the
// weight, the rows of dy, x and what is added. A row has one more element, 0, if its number is
// odd.
template <class T>
struct NormTile {
  using A = Acc<T>;
  const NormGradArgs& a;
  RowFacts<A>* facts = reinterpret_cast<RowFacts<A>*>(dynamic_shared());
  A* sums = reinterpret_cast<A*>(facts + a.tile);  // dw, db, sums of y
  A* partial = sums + 3 * a.columns;
  char* rows = dynamic_shared() + a.rows_at;

  __device__ T* row(int i) const { return reinterpret_cast<T*>(rows + i * a.pitch); }
  __device__ T* w() const { return row(0); }
  __device__ T* dy(int i) const { return row(1 + i); }
  __device__ T* x(int i) const { return row(1 + a.tile + i); }
  __device__ T* added(int i) const { return row(1 + 2 * a.tile + i); }

  // The k-th sum of a column: W columns that a thread has lie in W different arrays, so that
  // neighbouring threads use different banks.
  template <int W>
  __device__ A* sum(int k, int c) const {
    return sums + (k * W + c % W) * (a.columns / W) + c / W;
  }

  // Starts to copy `count` rows. Odd ones end with a 0.
  __device__ void load(T* to, const void* all, int64_t first, int count) const {
    const int n = a.columns, apart = a.pitch / int(sizeof(T));
    const T* from = static_cast<const T*>(all) + first * n;
    constexpr int packet = Packet<T>::size;
    if (a.packets) {
      for (int c = int(threadIdx.x) * packet; c < n; c += kNormThreads * packet)
#pragma unroll 8
        for (int i = 0; i < count; ++i)
          copy_async(to + i * apart + c, from + int64_t(i) * n + c, true);
      return;
    }
    for (int c = int(threadIdx.x); c < n + n % 2; c += kNormThreads)
#pragma unroll 1
      for (int i = 0; i < count; ++i)
        to[i * apart + c] = c < n ? from[int64_t(i) * n + c] : T(0.0f);
  }
};

// The sum of the lanes of a team of threads; thread 0 gets it.
template <class A>
__device__ A add_lanes(unsigned team, A (&lane)[2]) {
#pragma unroll
  for (int d = kTeam / 2; d > 0; d /= 2)
#pragma unroll
    for (int j = 0; j < 2; ++j) lane[j] = lane[j] + __shfl_down_sync(team, lane[j], d, kTeam);
  return lane[0] + lane[1];
}

// The tree over n entries; they are overwritten.
template <class A>
__device__ A add_entries(A* entry, int n) {
  for (int step = 1; step < n; step *= 2)
    for (int i = 0; i + step < n; i += 2 * step) entry[i] = entry[i] + entry[i + step];
  return entry[0];
}

// Computes the facts of the tile's row i, which is number `row`, with the threads of a team.
template <class T>
__device__ void sum_row(const NormTile<T>& tile, int i, int64_t row) {
  using A = Acc<T>;
  const NormGradArgs& a = tile.a;
  static_assert(kTeam == 8);
  const unsigned team = 0xffu << (threadIdx.x & 24);
  const int n = a.columns, mine = int(threadIdx.x) % kTeam * 2, blocks = a.blocks;
  const A mean = a.mean ? static_cast<const A*>(a.mean)[row] : A(0);
  const A rstd = static_cast<const A*>(a.rstd)[row];
  const T *dy = tile.dy(i), *x = tile.x(i), *w = tile.w();
  A* const partial = tile.partial + i * 2 * blocks;
  for (int b = 0; b < blocks; ++b) {
    const int first = b * ORR_SUM_BLOCK,
              end = n < first + ORR_SUM_BLOCK ? n : first + ORR_SUM_BLOCK;
    A g[2] = {}, gx[2] = {};
#pragma unroll 4
    for (int c = first + mine; c < end; c += 2 * kTeam) {
      using Two = const Packet<T, 2>*;
      const auto d = values(*Two(dy + c)), v = values(*Two(x + c)), u = values(*Two(w + c));
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const A term = d.v[j] * u.v[j];
        g[j] = g[j] + term;
        gx[j] = gx[j] + term * ((v.v[j] - mean) * rstd);
      }
    }
    const A g_sum = add_lanes(team, g), gx_sum = add_lanes(team, gx);
    if (mine == 0) partial[b] = g_sum, partial[blocks + b] = gx_sum;
  }
  if (mine != 0) return;
  const A g_mean = a.mean ? add_entries(partial, blocks) / A(n) : A(0);
  tile.facts[i] = {mean, rstd, g_mean, add_entries(partial + blocks, blocks) / A(n)};
}

// Stores y of `count` rows of the tile from number `row` on in the columns [c, c + W), and adds
// these rows to the sums.
template <int W, class T>
__device__ void columns_of(const NormTile<T>& tile, int c, int64_t row, int count) {
  using A = Acc<T>;
  using Some = Packet<T, W>;
  const NormGradArgs& a = tile.a;
  const int n = a.columns;
  const auto some = [=](const T* from) { return values(*reinterpret_cast<const Some*>(from + c)); };
  const auto w = some(tile.w());
  Packet<A, W> sum[3];
#pragma unroll
  for (int k = 0; k < 3; ++k)
#pragma unroll
    for (int j = 0; j < W; ++j) sum[k].v[j] = *tile.template sum<W>(k, c + j);
  T* y = static_cast<T*>(a.y) + row * n + c;
#pragma unroll 2
  for (int i = 0; i < count; ++i, y += n) {
    const RowFacts<A> f = tile.facts[i];
    const auto d = some(tile.dy(i)), x = some(tile.x(i)),
               r = a.added ? some(tile.added(i)) : Packet<A, W>{};
    Packet<A, W> dx;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const A v = x.v[j] - f.mean;
      dx.v[j] = f.rstd * (d.v[j] * w.v[j] - f.g_mean - v * f.rstd * f.gx_mean);
      sum[0].v[j] = sum[0].v[j] + d.v[j] * v * f.rstd;
      sum[1].v[j] = sum[1].v[j] + d.v[j];
    }
    Some to = rounded<T>(dx);
    if (a.added) {
      dx = values(to);
#pragma unroll
      for (int j = 0; j < W; ++j) dx.v[j] = dx.v[j] + r.v[j];
      to = rounded<T>(dx);
    }
    dx = values(to);
#pragma unroll
    for (int j = 0; j < W; ++j) sum[2].v[j] = sum[2].v[j] + dx.v[j];
    *reinterpret_cast<Some*>(y) = to;
  }
#pragma unroll
  for (int k = 0; k < 3; ++k)
#pragma unroll
    for (int j = 0; j < W; ++j) *tile.template sum<W>(k, c + j) = sum[k].v[j];
}

template <int W, class T>
__device__ void all_columns(const NormTile<T>& tile, int64_t row, int count) {
  for (int c = int(threadIdx.x) * W; c < tile.a.columns; c += kNormThreads * W)
    columns_of<W>(tile, c, row, count);
}

template <int W, class T>
__device__ void store_sums(const NormTile<T>& tile) {
  const NormGradArgs& a = tile.a;
  for (int c = int(threadIdx.x); c < a.columns; c += kNormThreads) {
    const int64_t to = int64_t(blockIdx.x) * a.columns + c;
    store_fold<T>(a.sums, 0, to, *tile.template sum<W>(0, c));
    if (a.mean) store_fold<T>(a.sums, 1, to, *tile.template sum<W>(1, c));
    if (a.sums_y) store_fold<T>(a.sums, a.mean ? 2 : 1, to, *tile.template sum<W>(2, c));
  }
}

template <class T>
__device__ void norm_grad(const NormGradArgs& a) {
  const NormTile<T> tile{a};
  const int n = a.columns, team = int(threadIdx.x) / kTeam;
  const int64_t begin = blockIdx.x % a.entries * ORR_SUM_ROWS, left = a.length - begin;
  const int64_t first = blockIdx.x / a.entries * a.length + begin;
  const int count = left < ORR_SUM_ROWS ? int(left) : ORR_SUM_ROWS;
  for (int c = int(threadIdx.x); c < 3 * n; c += kNormThreads) tile.sums[c] = 0;
  tile.load(tile.w(), a.w, 0, 1);
  for (int r = 0; r < count; r += a.tile) {
    const int here = count - r < a.tile ? count - r : a.tile;
    tile.load(tile.dy(0), a.dy, first + r, here);
    tile.load(tile.x(0), a.x, first + r, here);
    if (a.added) tile.load(tile.added(0), a.added, first + r, here);
    wait_copies();
    __syncthreads();
    if (team < here) sum_row(tile, team, first + r + team);
    __syncthreads();
    if (a.packets)
      all_columns<Packet<T>::size>(tile, first + r, here);
    else
      all_columns<1>(tile, first + r, here);
    __syncthreads();
  }
  if (a.packets)
    store_sums<Packet<T>::size>(tile);
  else
    store_sums<1>(tile);
}

}  // namespace

ORR_REAL_KERNELS(norm_grad, kNormThreads, NormGradArgs)

}  // namespace orr_cuda
