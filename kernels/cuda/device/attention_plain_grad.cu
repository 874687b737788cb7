// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention without tensor cores. One launch has a block for every 32 queries and
// computes dq, another has one for every 32 keys and computes dk and dv (16 for deep heads). So
// each sum is computed by one thread, in one order. Both compute the scores again.
#include "attention_plain.h"
#include "packet.h"

namespace orr_cuda {
namespace {

// The part of the dot product of two rows that a lane of `lanes` has. REQUIRES: if `packets`,
// 16-bit rows of a multiple of 8 elements, aligned to 16 bytes.
template <class T, class A>
__device__ A part_of_dot(const T* x, const T* y, int depth, int lane, int lanes, bool packets) {
  A sum = 0;
  if (packets) {
    for (int c = lane * 8; c < depth; c += lanes * 8) {
      const Packet<T> a = load_packet(x + c), b = load_packet(y + c);
#pragma unroll
      for (int j = 0; j < Packet<T>::size; ++j) sum += get(a.v[j]) * get(b.v[j]);
    }
  } else {
    for (int c = lane; c < depth; c += lanes) sum += get(x[c]) * get(y[c]);
  }
  return sum;
}

// delta[t] = the sum of do * o over a row.
template <class T>
__device__ void attention_delta(const AttentionArgs& a) {
  using A = Acc<T>;
  const int lanes = a.delta_lanes, lane = int(threadIdx.x) % lanes;
  const int t = (int(blockIdx.x) * kPlainThreads + int(threadIdx.x)) / lanes;
  const bool exists = t < a.queries;  // all lanes of a warp take part in its exchanges
  const int row = exists ? t : 0;
  A sum = part_of_dot<T, A>(head_row<const T>(a, a.d_o, row), head_row<const T>(a, a.o, row),
                            a.depth, lane, lanes, a.packets);
  for (int d = lanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (exists && lane == 0) static_cast<A*>(a.delta)[first_statistic(a) + t] = sum;
}

// lse of query t; 0 where it sees no key, so that scores of -infinity less it are not NaN.
template <class A>
__device__ A lse_of(const AttentionArgs& a, int t) {
  const A lse = load_statistic<A>(a.lse, a.wide_lse, first_statistic(a) + t);
  return lse == A(-HUGE_VALF) ? A(0) : lse;
}

// The gradient of the bias of the keys from s0 on, which the queries from t0 on do not see: zeros.
template <class T>
__device__ void clear_bias(const AttentionArgs& a, int t0, int count, int s0) {
  for (int i = 0; i < count && t0 + i < a.queries; ++i)
    for (int s = s0 + int(threadIdx.x); s < a.keys; s += kPlainThreads)
      head_row<T>(a, a.d_bias, t0 + i)[s] = rounded<T>(Acc<T>(0));
}

// ds of a tile of queries from t0 and of keys from s0, and p, by which values were multiplied, at
// [query][key] of each. A thread makes the same elements of both, and may store what the bias gets.
template <class T, bool store_bias, class Tiles, class A>
__device__ void gradients_of_scores(const Tiles& tiles, const AttentionArgs& a,
                                    const Dropout& dropout, int t0, int s0, const A* q, const A* k,
                                    const A* d_o, const A* v, A* p, A* ds) {
  constexpr int stride = Tiles::square_stride;
  dot_tiles(tiles, q, k, [&](int i, int j, A x) {
    const bool sees = t0 + i < a.queries && s0 + j < seen(a, t0 + i);
    p[i * stride + j] =
        sees ? exp(biased<T>(a, t0 + i, s0 + j, x * A(a.scale)) - lse_of<A>(a, t0 + i)) : A(0);
  });
  dot_tiles(tiles, d_o, v, [&](int i, int j, A x) {
    const A delta =
        t0 + i < a.queries ? static_cast<const A*>(a.delta)[first_statistic(a) + t0 + i] : A(0);
    A& weight = p[i * stride + j];
    A keep = A(1);
    if (dropout.on) keep = dropout.leaves_out(t0 + i, s0 + j) ? A(0) : A(a.keep);
    const A slope = weight * (x * keep - delta);
    if (store_bias && a.d_bias.data && t0 + i < a.queries && s0 + j < a.keys)
      head_row<T>(a, a.d_bias, t0 + i)[s0 + j] = rounded<T>(slope);
    ds[i * stride + j] = slope * A(a.scale);
    weight *= keep;
  });
}

template <class T, int tile>
__device__ void attention_grad_q(const AttentionArgs& a) {
  using A = Acc<T>;
  using Tiles = PlainTiles<A, tile>;
  constexpr int stride = Tiles::square_stride;
  const Tiles tiles(a.depth);
  const Dropout dropout(a);
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *d_o = tiles.rows(3);
  A *dq = tiles.rows(4), *p = tiles.square(5, 0), *ds = tiles.square(5, 1);
  const int t0 = int(blockIdx.x) * tile;
  load_tile<T>(tiles, a, a.q, t0, a.queries, q);
  load_tile<T>(tiles, a, a.d_o, t0, a.queries, d_o);
  clear_tile(tiles, dq);
  const auto one = [](int) { return A(1); };
  const int last = seen(a, t0 + tile - 1 < a.queries ? t0 + tile - 1 : a.queries - 1);
  if (a.d_bias.data) clear_bias<T>(a, t0, tile, (last + tile - 1) / tile * tile);
  for (int s0 = 0; s0 < last; s0 += tile) {
    __syncthreads();
    load_tile<T>(tiles, a, a.k, s0, a.keys, k);
    load_tile<T>(tiles, a, a.v, s0, a.keys, v);
    __syncthreads();
    gradients_of_scores<T, true>(tiles, a, dropout, t0, s0, q, k, d_o, v, p, ds);
    __syncthreads();
    add_rows(
        tiles, dq, one, [=](int i, int j) { return ds[i * stride + j]; }, k);
  }
  __syncthreads();
  each_element(tiles, [&](int i, int c) {
    if (t0 + i < a.queries) head_row<T>(a, a.dq, t0 + i)[c] = rounded<T>(dq[i * tiles.stride + c]);
  });
}

template <class T, int tile>
__device__ void attention_grad_kv(const AttentionArgs& a) {
  using A = Acc<T>;
  using Tiles = PlainTiles<A, tile>;
  constexpr int stride = Tiles::square_stride;
  const Tiles tiles(a.depth);
  const Dropout dropout(a);
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *d_o = tiles.rows(3);
  A *dk = tiles.rows(4), *dv = tiles.rows(5), *p = tiles.square(6, 0), *ds = tiles.square(6, 1);
  const int s0 = int(blockIdx.x) * tile;
  load_tile<T>(tiles, a, a.k, s0, a.keys, k);
  load_tile<T>(tiles, a, a.v, s0, a.keys, v);
  clear_tile(tiles, dk);
  clear_tile(tiles, dv);
  const auto one = [](int) { return A(1); };
  for (int t0 = first_query(a, s0) / tile * tile; t0 < a.queries; t0 += tile) {
    __syncthreads();
    load_tile<T>(tiles, a, a.q, t0, a.queries, q);
    load_tile<T>(tiles, a, a.d_o, t0, a.queries, d_o);
    __syncthreads();
    gradients_of_scores<T, false>(tiles, a, dropout, t0, s0, q, k, d_o, v, p, ds);
    __syncthreads();
    add_rows(
        tiles, dk, one, [=](int j, int i) { return ds[i * stride + j]; }, q);
    add_rows(
        tiles, dv, one, [=](int j, int i) { return p[i * stride + j]; }, d_o);
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
ORR_TILED(attention_grad_q, 16)
ORR_TILED(attention_grad_q, 32)
ORR_TILED(attention_grad_kv, 16)
ORR_TILED(attention_grad_kv, 32)

}  // namespace orr_cuda
