// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention without tensor cores. One launch has a block for every 32 queries and
// computes delta and dq, another has one for every 32 keys and computes dk and dv (16 for deep
// heads). So each sum is computed by one thread, in one order. Both compute the scores again.
#include "attention_plain.h"

namespace orr_cuda {
namespace {

// lse of query t; 0 where it sees no key, so that scores of -infinity less it are not NaN.
template <class A>
__device__ A lse_of(const AttentionArgs& a, int head, int t) {
  const A lse = load_statistic<A>(a.lse, a.wide_lse, first_statistic(a, head) + t);
  return lse == A(-HUGE_VALF) ? A(0) : lse;
}

// The gradient of the bias of the keys [s0, end), which the queries from t0 on do not see: zeros.
template <class T>
__device__ void clear_bias(const AttentionArgs& a, int t0, int count, int s0, int end) {
  for (int i = 0; i < count && t0 + i < a.queries; ++i)
    for (int s = s0 + int(threadIdx.x); s < end && s < a.keys; s += kPlainThreads)
      head_row<T>(a.d_bias, int(blockIdx.y), t0 + i)[s] = rounded<T>(Acc<T>(0));
}

// ds of a tile of queries from t0 and of keys from s0, and p, by which values were multiplied, at
// [query][key] of each. A thread makes the same elements of both, and may store what the bias gets.
template <class T, bool store_bias, class Tiles, class A>
__device__ void gradients_of_scores(const Tiles& tiles, const AttentionArgs& a,
                                    const Dropout& dropout, int head, int t0, int s0, const A* q,
                                    const A* k, const A* d_o, const A* v, A* p, A* ds) {
  constexpr int stride = Tiles::square_stride;
  dot_tiles(tiles, q, k, [&](int i, int j, A x) {
    const bool sees = sees_key(a, t0 + i, s0 + j);
    p[i * stride + j] =
        sees ? exp(biased<T>(a, head, t0 + i, s0 + j, x * A(a.scale)) - lse_of<A>(a, head, t0 + i))
             : A(0);
  });
  dot_tiles(tiles, d_o, v, [&](int i, int j, A x) {
    const A delta = t0 + i < a.queries
                        ? static_cast<const A*>(a.delta)[first_statistic(a, head) + t0 + i]
                        : A(0);
    A& weight = p[i * stride + j];
    A keep = A(1);
    if (dropout.on) keep = dropout.leaves_out(t0 + i, s0 + j) ? A(0) : A(a.keep);
    const A slope = weight * (x * keep - delta);
    if (store_bias && a.d_bias.data && t0 + i < a.queries && s0 + j < a.keys)
      head_row<T>(a.d_bias, head, t0 + i)[s0 + j] = rounded<T>(slope);
    ds[i * stride + j] = slope * A(a.scale);
    weight *= keep;
  });
}

// Rows of the block are keys, or else queries; the others go by.
template <class T, int tile, bool of_keys>
__device__ void attention_grad(const AttentionArgs& a) {
  using A = Acc<T>;
  using Tiles = PlainTiles<A, tile>;
  constexpr int stride = Tiles::square_stride, sums = of_keys ? 2 : 1;
  const Tiles tiles(a.depth);
  const int own_head = int(blockIdx.y);  // that of keys, or else of queries
  A *q = tiles.rows(0), *k = tiles.rows(1), *v = tiles.rows(2), *d_o = tiles.rows(3);
  A* const p = tiles.square(4 + sums, 0);
  A* const ds = tiles.square(4 + sums, 1);
  const auto load = [&](bool keys, int head, int at) {
    load_tile<T>(tiles, keys ? a.k : a.q, head, at, keys ? a.keys : a.queries, keys ? k : q);
    load_tile<T>(tiles, keys ? a.v : a.d_o, head, at, keys ? a.keys : a.queries, keys ? v : d_o);
  };
  const int own = int(blockIdx.x) * tile, count = of_keys ? a.keys : a.queries;
  constexpr int lanes = kPlainThreads / tile;
  if (!of_keys) delta_of<T>(a, own + int(threadIdx.x) / lanes, lanes);
  load(of_keys, own_head, own);
  for (int i = 0; i < sums; ++i) clear_tile(tiles, tiles.rows(4 + i));
  const int first = (of_keys ? first_query(a, own) : first_key(a, own)) / tile * tile;
  const int last = of_keys ? end_query(a, own + tile - 1) : end_key(a, own + tile - 1);
  if (!of_keys && a.d_bias.data) {
    clear_bias<T>(a, own, tile, 0, first);
    clear_bias<T>(a, own, tile, first + (larger(last, first) - first + tile - 1) / tile * tile,
                  a.keys);
  }
  const auto one = [](int) { return A(1); };
  for (int reader = 0; reader < (of_keys ? a.readers : 1); ++reader) {
    const int head = of_keys ? own_head * a.readers + reader : own_head;
    const Dropout dropout(a, head);
    for (int at = first; at < last; at += tile) {
      __syncthreads();
      load(!of_keys, of_keys ? head : head / a.readers, at);
      __syncthreads();
      gradients_of_scores<T, !of_keys>(tiles, a, dropout, head, of_keys ? at : own,
                                       of_keys ? own : at, q, k, d_o, v, p, ds);
      __syncthreads();
      const auto weight = [=](const A* of) {
        return [=](int i, int j) { return of_keys ? of[j * stride + i] : of[i * stride + j]; };
      };
      add_rows(tiles, tiles.rows(4), one, weight(ds), of_keys ? q : k);
      if (of_keys) add_rows(tiles, tiles.rows(5), one, weight(p), d_o);
    }
  }
  __syncthreads();
  each_element(tiles, [&](int i, int c) {
    if (own + i >= count) return;
    const A* sum = tiles.rows(4) + i * tiles.stride + c;
    head_row<T>(of_keys ? a.dk : a.dq, own_head, own + i)[c] = rounded<T>(*sum);
    if (of_keys) head_row<T>(a.dv, own_head, own + i)[c] = rounded<T>(sum[tile * tiles.stride]);
  });
}

}  // namespace

// Else the compiler would spill registers, so that more blocks fit beside each other.
#undef ORR_BLOCKS
#define ORR_BLOCKS(threads) 1
ORR_TILED(attention_grad_q, 16, attention_grad<T, 16, false>)
ORR_TILED(attention_grad_q, 32, attention_grad<T, 32, false>)
ORR_TILED(attention_grad_kv, 16, attention_grad<T, 16, true>)
ORR_TILED(attention_grad_kv, 32, attention_grad<T, 32, true>)

}  // namespace orr_cuda
