// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention without tensor cores. One launch has a block for each 16 queries and
// makes dq, another has one for each 16 keys and makes dk and dv, so that every sum has one thread
// and one order. Scores are made again in both.
#include "attention_plain.h"

namespace orr_cuda {
namespace {

constexpr int kTile = kPlainTile;

// delta[t] = the sum of do * o over a row, one warp for each.
template <class T>
__device__ void attention_delta(const AttentionArgs& a) {
  using A = Acc<T>;
  const int lane = int(threadIdx.x) % 32;
  const int t = int(blockIdx.x) * (kPlainThreads / 32) + int(threadIdx.x) / 32;
  if (t >= a.queries) return;
  const T *x = head_row<const T>(a, a.d_o, t), *y = head_row<const T>(a, a.o, t);
  A sum = 0;
  for (int c = lane; c < a.depth; c += 32) sum += get(x[c]) * get(y[c]);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) static_cast<A*>(a.delta)[first_statistic(a) + t] = sum;
}

// p and ds of a tile of queries from t0 and of keys from s0, at [query][key] of each.
template <class T, class A>
__device__ void gradients_of_scores(const PlainTiles<A>& tiles, const AttentionArgs& a, int t0,
                                    int s0, const A* q, const A* k, const A* d_o, const A* v, A* p,
                                    A* ds) {
  dot_tiles(tiles, q, k, [&](int i, int j, A x) {
    const bool sees = t0 + i < a.queries && s0 + j < seen(a, t0 + i);
    const int64_t at = first_statistic(a) + t0 + i;
    p[i * kSquare + j] =
        sees ? exp_of(x * A(a.scale) - load_statistic<A>(a.lse, a.wide_lse, at)) : A(0);
  });
  dot_tiles(tiles, d_o, v, [&](int i, int j, A x) {
    const A delta =
        t0 + i < a.queries ? static_cast<const A*>(a.delta)[first_statistic(a) + t0 + i] : A(0);
    ds[i * kSquare + j] = p[i * kSquare + j] * (x - delta) * A(a.scale);
  });
}

template <class T>
__device__ void attention_grad_q(const AttentionArgs& a) {
  using A = Acc<T>;
  const PlainTiles<A> tiles(a.depth);
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *d_o = tiles.rows(3);
  A *dq = tiles.rows(4), *p = tiles.square(5, 0), *ds = tiles.square(5, 1);
  const int t0 = int(blockIdx.x) * kTile;
  load_tile<T>(tiles, a, a.q, t0, a.queries, q);
  load_tile<T>(tiles, a, a.d_o, t0, a.queries, d_o);
  clear_tile(tiles, dq);
  const int last = seen(a, t0 + kTile - 1 < a.queries ? t0 + kTile - 1 : a.queries - 1);
  for (int s0 = 0; s0 < last; s0 += kTile) {
    __syncthreads();
    load_tile<T>(tiles, a, a.k, s0, a.keys, k);
    load_tile<T>(tiles, a, a.v, s0, a.keys, v);
    __syncthreads();
    gradients_of_scores<T>(tiles, a, t0, s0, q, k, d_o, v, p, ds);
    __syncthreads();
    each_element(tiles, [&](int i, int c) {
      A x = dq[i * tiles.stride + c];
      for (int j = 0; j < kTile; ++j) x += ds[i * kSquare + j] * k[j * tiles.stride + c];
      dq[i * tiles.stride + c] = x;
    });
  }
  __syncthreads();
  each_element(tiles, [&](int i, int c) {
    if (t0 + i < a.queries)
      head_row<T>(a, a.dq, t0 + i)[c] = rounded<T>(dq[i * tiles.stride + c]);
  });
}

template <class T>
__device__ void attention_grad_kv(const AttentionArgs& a) {
  using A = Acc<T>;
  const PlainTiles<A> tiles(a.depth);
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *d_o = tiles.rows(3);
  A *dk = tiles.rows(4), *dv = tiles.rows(5), *p = tiles.square(6, 0), *ds = tiles.square(6, 1);
  const int s0 = int(blockIdx.x) * kTile;
  load_tile<T>(tiles, a, a.k, s0, a.keys, k);
  load_tile<T>(tiles, a, a.v, s0, a.keys, v);
  clear_tile(tiles, dk);
  clear_tile(tiles, dv);
  for (int t0 = first_query(a, s0) / kTile * kTile; t0 < a.queries; t0 += kTile) {
    __syncthreads();
    load_tile<T>(tiles, a, a.q, t0, a.queries, q);
    load_tile<T>(tiles, a, a.d_o, t0, a.queries, d_o);
    __syncthreads();
    gradients_of_scores<T>(tiles, a, t0, s0, q, k, d_o, v, p, ds);
    __syncthreads();
    each_element(tiles, [&](int j, int c) {
      A x = dk[j * tiles.stride + c], y = dv[j * tiles.stride + c];
      for (int i = 0; i < kTile; ++i) {
        x += ds[i * kSquare + j] * q[i * tiles.stride + c];
        y += p[i * kSquare + j] * d_o[i * tiles.stride + c];
      }
      dk[j * tiles.stride + c] = x;
      dv[j * tiles.stride + c] = y;
    });
  }
  __syncthreads();
  each_element(tiles, [&](int j, int c) {
    if (s0 + j >= a.keys) return;
    head_row<T>(a, a.dk, s0 + j)[c] = rounded<T>(dk[j * tiles.stride + c]);
    head_row<T>(a, a.dv, s0 + j)[c] = rounded<T>(dv[j * tiles.stride + c]);
  });
}

}  // namespace

ORR_REAL_KERNELS(attention_delta, kPlainThreads, AttentionArgs)
ORR_REAL_KERNELS(attention_grad_q, kPlainThreads, AttentionArgs)
ORR_REAL_KERNELS(attention_grad_kv, kPlainThreads, AttentionArgs)

}  // namespace orr_cuda
