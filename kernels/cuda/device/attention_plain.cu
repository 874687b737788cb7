// SPDX-License-Identifier: Apache-2.0
//
// attention without tensor cores, for f32, f64 and heads of any size: a block takes 16 queries and
// goes over the keys 16 at a time with a running maximum. No product is fused with a sum.
#include "attention_place.h"
#include "attention_plain.h"

namespace orr_cuda {
namespace {

constexpr int kTile = kPlainTile;

template <class T>
__device__ void attention(const AttentionArgs& a) {
  using A = Acc<T>;
  const PlainTiles<A> tiles(a.depth);
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *o = tiles.rows(3);
  A *p = tiles.square(4, 0);
  __shared__ A top[kTile], sum[kTile], factor[kTile];
  const int t0 = int(blockIdx.x) * kTile, rank = int(threadIdx.x);
  load_tile<T>(tiles, a, a.q, t0, a.queries, q);
  clear_tile(tiles, o);
  if (rank < kTile) top[rank] = A(-HUGE_VALF), sum[rank] = 0;
  const int last = seen(a, t0 + kTile - 1 < a.queries ? t0 + kTile - 1 : a.queries - 1);
  for (int s0 = 0; s0 < last; s0 += kTile) {
    __syncthreads();
    load_tile<T>(tiles, a, a.k, s0, a.keys, k);
    load_tile<T>(tiles, a, a.v, s0, a.keys, v);
    __syncthreads();
    dot_tiles(tiles, q, k, [&](int i, int j, A x) {
      p[i * kSquare + j] = s0 + j < seen(a, t0 + i) ? x * A(a.scale) : A(-HUGE_VALF);
    });
    __syncthreads();
    if (rank < kTile) {
      A best = top[rank], total = 0;
      for (int j = 0; j < kTile; ++j) best = larger(best, p[rank * kSquare + j]);
      const A base = best == A(-HUGE_VALF) ? A(0) : best;
      for (int j = 0; j < kTile; ++j) {
        const A e = exp_of(p[rank * kSquare + j] - base);
        p[rank * kSquare + j] = e;
        total += e;
      }
      factor[rank] = exp_of(top[rank] - base);
      sum[rank] = sum[rank] * factor[rank] + total;
      top[rank] = best;
    }
    __syncthreads();
    each_element(tiles, [&](int i, int c) {
      A x = o[i * tiles.stride + c] * factor[i];
      for (int j = 0; j < kTile; ++j) x += p[i * kSquare + j] * v[j * tiles.stride + c];
      o[i * tiles.stride + c] = x;
    });
  }
  __syncthreads();
  each_element(tiles, [&](int i, int c) {
    if (t0 + i >= a.queries) return;
    const A inverse = sum[i] > A(0) || sum[i] != sum[i] ? A(1) / sum[i] : A(0);
    head_row<T>(a, a.o, t0 + i)[c] = rounded<T>(o[i * tiles.stride + c] * inverse);
  });
  if (rank < kTile && t0 + rank < a.queries)
    store_statistic(a.lse, a.wide_lse, first_statistic(a) + t0 + rank, top[rank] + log_of(sum[rank]));
}

}  // namespace

ORR_REAL_KERNELS(attention, kPlainThreads, AttentionArgs)

}  // namespace orr_cuda
