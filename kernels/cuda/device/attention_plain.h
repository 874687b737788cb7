// SPDX-License-Identifier: Apache-2.0
//
// Tiles of 16 or 32 rows in shared memory, as accumulators, and the products of tiles for plain
// attention. Each thread computes a small block of a product, so that it uses each loaded element
// more than once.
#pragma once

#include "attention_place.h"

namespace orr_cuda {

// Defines name_<tile>_f32 and so on; the last argument does the work for elements of type T.
#define ORR_TILED(name, tile, ...)                        \
  template <class T>                                      \
  __device__ void name##_##tile(const AttentionArgs& a) { \
    __VA_ARGS__(a);                                       \
  }                                                       \
  ORR_REAL_KERNELS(name##_##tile, kPlainThreads, AttentionArgs)

// The layout of shared memory: first tiles of rows, then tiles of scores.
template <class Number, int tile_rows>
struct PlainTiles {
  using A = Number;
  enum { tile = tile_rows, square_stride = tile + 1 };
  int depth, stride;

  __device__ explicit PlainTiles(int depth) : depth(depth), stride(depth + 1) {}
  __device__ A* rows(int i) const {
    return reinterpret_cast<A*>(dynamic_shared()) + i * tile * stride;
  }
  // The i-th tile of scores behind `tiles` tiles of rows.
  __device__ A* square(int tiles, int i) const { return rows(tiles) + i * tile * square_stride; }
};

// Calls f(row, column) for each element of a tile of rows, on one thread each.
template <class Tiles, class F>
__device__ void each_element(const Tiles& t, F f) {
  for (int e = int(threadIdx.x); e < Tiles::tile * t.depth; e += kPlainThreads)
    f(e / t.depth, e % t.depth);
}

template <class Tiles>
__device__ void clear_tile(const Tiles& t, typename Tiles::A* to) {
  each_element(t, [=](int i, int c) { to[i * t.stride + c] = 0; });
}

// Loads the rows of a head from `first` on; zeros beyond `count` rows.
template <class T, class Tiles>
__device__ void load_tile(const Tiles& t, const Heads& x, int head, int first, int count,
                          typename Tiles::A* to) {
  each_element(t, [&](int i, int c) {
    to[i * t.stride + c] =
        first + i < count ? get(head_row<const T>(x, head, first + i)[c]) : typename Tiles::A(0);
  });
}

// Calls f(i, j, x[i] . y[j]) for the rows of two tiles; the dot product is added in order.
template <class Tiles, class F>
__device__ void dot_tiles(const Tiles& t, const typename Tiles::A* x, const typename Tiles::A* y,
                          F f) {
  constexpr int high = Tiles::tile / 16, wide = Tiles::tile / 8;
  static_assert(16 * 8 == kPlainThreads);
  const int i0 = int(threadIdx.x) / 8, j0 = int(threadIdx.x) % 8;
  typename Tiles::A sum[high][wide] = {};
  for (int c = 0; c < t.depth; ++c) {
#pragma unroll
    for (int i = 0; i < high; ++i)
#pragma unroll
      for (int j = 0; j < wide; ++j)
        sum[i][j] += x[(i0 + 16 * i) * t.stride + c] * y[(j0 + 8 * j) * t.stride + c];
  }
#pragma unroll
  for (int i = 0; i < high; ++i)
#pragma unroll
    for (int j = 0; j < wide; ++j) f(i0 + 16 * i, j0 + 8 * j, sum[i][j]);
}

// to[i] = to[i] * factor(i) + the sum over j, in order, of weight(i, j) * y[j].
template <class Tiles, class Factor, class Weight>
__device__ void add_rows(const Tiles& t, typename Tiles::A* to, Factor factor, Weight weight,
                         const typename Tiles::A* y) {
  constexpr int high = Tiles::tile / 4;
  for (int e = int(threadIdx.x); e < 4 * t.depth; e += kPlainThreads) {
    const int i0 = e / t.depth * high, c = e % t.depth;
    typename Tiles::A x[high];
#pragma unroll
    for (int i = 0; i < high; ++i) x[i] = to[(i0 + i) * t.stride + c] * factor(i0 + i);
    for (int j = 0; j < Tiles::tile; ++j) {
      const typename Tiles::A row = y[j * t.stride + c];
#pragma unroll
      for (int i = 0; i < high; ++i) x[i] += weight(i0 + i, j) * row;
    }
#pragma unroll
    for (int i = 0; i < high; ++i) to[(i0 + i) * t.stride + c] = x[i];
  }
}

// Whether there is a query t that sees key s.
__device__ inline bool sees_key(const AttentionArgs& a, int t, int s) {
  return t < a.queries && s >= first_key(a, t) && s < end_key(a, t);
}

// lse and delta are f32, or f64 for f64 operands.
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
