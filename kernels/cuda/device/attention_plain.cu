// SPDX-License-Identifier: Apache-2.0
//
// attention without tensor cores, for f32, f64 and heads of any size. A block works on 32 queries,
// and goes over the keys 32 at a time with a running maximum; for deep heads it is 16 and 16. No
// product is fused with a sum.
#include "attention_place.h"
#include "attention_plain.h"

namespace orr_cuda {
namespace {

template <class T, int tile>
__device__ void attention(const AttentionArgs& a) {
  using A = Acc<T>;
  using Tiles = PlainTiles<A, tile>;
  constexpr int stride = Tiles::square_stride;
  const Tiles tiles(a.depth);
  const int head = int(blockIdx.y), key_head = head / a.readers;
  const Dropout dropout(a, head);
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *o = tiles.rows(3);
  A* p = tiles.square(4, 0);
  __shared__ A top[tile], sum[tile], factor[tile];
  const int t0 = int(blockIdx.x) * tile, rank = int(threadIdx.x);
  load_tile<T>(tiles, a.q, head, t0, a.queries, q);
  clear_tile(tiles, o);
  if (rank < tile) top[rank] = A(-HUGE_VALF), sum[rank] = 0;
  const int last = end_key(a, t0 + tile - 1);
  for (int s0 = first_key(a, t0) / tile * tile; s0 < last; s0 += tile) {
    __syncthreads();
    load_tile<T>(tiles, a.k, key_head, s0, a.keys, k);
    load_tile<T>(tiles, a.v, key_head, s0, a.keys, v);
    __syncthreads();
    dot_tiles(tiles, q, k, [&](int i, int j, A x) {
      const bool sees = sees_key(a, t0 + i, s0 + j);
      p[i * stride + j] = sees ? biased<T>(a, head, t0 + i, s0 + j, x * A(a.scale)) : A(-HUGE_VALF);
    });
    __syncthreads();
    if (rank < tile) {
      A best = top[rank], total = 0;
      for (int j = 0; j < tile; ++j) best = larger(best, p[rank * stride + j]);
      const A base = best == A(-HUGE_VALF) ? A(0) : best;
      for (int j = 0; j < tile; ++j) {
        const A e = exp(p[rank * stride + j] - base);
        p[rank * stride + j] = dropout.on && dropout.leaves_out(t0 + rank, s0 + j) ? A(0) : e;
        total += e;
      }
      factor[rank] = exp(top[rank] - base);
      sum[rank] = sum[rank] * factor[rank] + total;
      top[rank] = best;
    }
    __syncthreads();
    add_rows(
        tiles, o, [=](int i) { return factor[i]; }, [=](int i, int j) { return p[i * stride + j]; },
        v);
  }
  __syncthreads();
  each_element(tiles, [&](int i, int c) {
    if (t0 + i >= a.queries) return;
    const A inverse = sum[i] > A(0) || sum[i] != sum[i] ? A(a.keep) / sum[i] : A(0);
    head_row<T>(a.o, head, t0 + i)[c] = rounded<T>(o[i * tiles.stride + c] * inverse);
  });
  if (rank < tile && t0 + rank < a.queries)
    store_statistic(a.lse, a.wide_lse, first_statistic(a, head) + t0 + rank,
                    top[rank] + log(sum[rank]));
}

}  // namespace

ORR_TILED(attention, 16, attention<T, 16>)
ORR_TILED(attention, 32, attention<T, 32>)

}  // namespace orr_cuda
