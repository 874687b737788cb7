// SPDX-License-Identifier: Apache-2.0
//
// Tiles of 16 rows in shared memory, as accumulators, and the products of them that plain attention
// takes.
#pragma once

#include "attention_place.h"

namespace orr_cuda {

enum { kSquare = kPlainTile + 1 };  // row stride of a tile of scores

// Tiles of rows come first, then tiles of scores.
template <class A>
struct PlainTiles {
  int depth, stride;

  __device__ explicit PlainTiles(int depth) : depth(depth), stride(depth + 1) {}
  __device__ A* rows(int i) const {
    return reinterpret_cast<A*>(dynamic_shared()) + i * kPlainTile * stride;
  }
  // The i-th tile of scores behind `tiles` tiles of rows.
  __device__ A* square(int tiles, int i) const { return rows(tiles) + i * kPlainTile * kSquare; }
};

// f(row, column) of a tile of rows, each by one thread.
template <class A, class F>
__device__ void each_element(const PlainTiles<A>& t, F f) {
  for (int e = int(threadIdx.x); e < kPlainTile * t.depth; e += kPlainThreads)
    f(e / t.depth, e % t.depth);
}

template <class A>
__device__ void clear_tile(const PlainTiles<A>& t, A* to) {
  each_element(t, [=](int i, int c) { to[i * t.stride + c] = A(0); });
}

// Rows [first, first + 16) of a head; zeros beyond `count` rows.
template <class T, class A>
__device__ void load_tile(const PlainTiles<A>& t, const AttentionArgs& a, const Heads& x, int first,
                          int count, A* to) {
  each_element(t, [&](int i, int c) {
    to[i * t.stride + c] = first + i < count ? get(head_row<const T>(a, x, first + i)[c]) : A(0);
  });
}

// f(i, j, x[i] . y[j]) for the rows of two tiles, the products added in order.
template <class A, class F>
__device__ void dot_tiles(const PlainTiles<A>& t, const A* x, const A* y, F f) {
  for (int e = int(threadIdx.x); e < kPlainTile * kPlainTile; e += kPlainThreads) {
    const int i = e / kPlainTile, j = e % kPlainTile;
    A sum = 0;
    for (int c = 0; c < t.depth; ++c) sum += x[i * t.stride + c] * y[j * t.stride + c];
    f(i, j, sum);
  }
}

// lse and delta are f32, or f64 beside f64 operands.
template <class A>
__device__ void store_statistic(void* to, bool wide, int64_t at, A x) {
  if (wide)
    static_cast<double*>(to)[at] = double(x);
  else
    static_cast<float*>(to)[at] = float(x);
}
template <class A>
__device__ A load_statistic(const void* from, bool wide, int64_t at) {
  return wide ? A(static_cast<const double*>(from)[at]) : A(static_cast<const float*>(from)[at]);
}

}  // namespace orr_cuda
