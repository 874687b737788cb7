// SPDX-License-Identifier: Apache-2.0
//
// Products of operands that are views (window_product.h), computed where they lie. A block makes
// one tile of the result, of one part of K, whose elements are added in their order: on tensor
// cores 16 bytes of K at a time, or one by one in f32. No order depends on the tile or on how many
// rows and columns there are.
#pragma once

#include "product_loader.h"

namespace orr_cuda {

// The part of a tile that a warp makes: 32 rows by `columns`.
template <int rows, int columns_>
struct WarpShare {
  static constexpr int warps_m = rows / 32, columns = columns_ / (kProductThreads / 32 / warps_m);
  static __device__ unsigned row() { return threadIdx.x / 32 % warps_m * 32; }
  static __device__ unsigned column() { return threadIdx.x / 32 / warps_m * columns; }
};

// A warp's sums on tensor cores, of f32 by TF32.
template <class T, int rows, int columns>
struct TensorSums {
  using Share = WarpShare<rows, columns>;

  template <class A, class B>
  __device__ void add(const A& a, const B& b) {
#pragma unroll 2  // of all four, addresses would take more registers than there are
    for (int k = 0; k < A::depth; k += A::step) {
      const OperandA left[2] = {a.left(Share::row(), 0, k), a.left(Share::row(), 16, k)};
#pragma unroll
      for (int j = 0; j < Share::columns / 16; ++j) {
        OperandB right[2];
        b.right(Share::column(), j * 16, k, right);
#pragma unroll
        for (int i = 0; i < 4; ++i) multiply<T>(x[i / 2][2 * j + i % 2], left[i / 2], right[i % 2]);
      }
    }
  }

  // Calls f(row, column, sum) for all sums of this lane.
  template <class F>
  __device__ void each(F f) const {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < Share::columns / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          f(Share::row() + i * 16 + e / 2 * 8 + lane / 4,
            Share::column() + j * 8 + lane % 4 * 2 + e % 2, x[i][j].x[e]);
  }

  Result x[2][Share::columns / 8] = {};
};

// A warp's sums in f32: a lane has every fourth row and every eighth column.
template <int rows, int columns>
struct PlainSums {
  using Share = WarpShare<rows, columns>;

  template <class A, class B>
  __device__ void add(const A& a, const B& b) {
    const unsigned r = first_row(), c = first_column();
    constexpr int some = A::k_is_along ? 4 : 2;  // of K, at a time
#pragma unroll 1
    for (int k = 0; k < A::depth; k += some) {
      float left[8][some], right[Share::columns / 8][some];
#pragma unroll
      for (int i = 0; i < 8; ++i) take(a, r + i * 4, k, left[i]);
#pragma unroll
      for (int j = 0; j < Share::columns / 8; ++j) take(b, c + j * 8, k, right[j]);
#pragma unroll
      for (int e = 0; e < some; ++e)
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
          for (int j = 0; j < Share::columns / 8; ++j)
            x[i][j] = fmaf(left[i][e], right[j][e], x[i][j]);
    }
  }

  template <class F>
  __device__ void each(F f) const {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < Share::columns / 8; ++j)
        f(first_row() + i * 4, first_column() + j * 8, x[i][j]);
  }

  float x[8][Share::columns / 8] = {};

 private:
  static __device__ unsigned first_row() { return Share::row() + threadIdx.x % 32 / 8; }
  static __device__ unsigned first_column() { return Share::column() + threadIdx.x % 8; }
  // n of K from k on.
  template <bool k_along, int extent, int n>
  static __device__ void take(const OperandTile<float, k_along, extent>& x, unsigned i, int k,
                              float (&to)[n]) {
    if constexpr (k_along)
      *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(x.place(i, k));
    else
      for (int e = 0; e < n; ++e) to[e] = *x.place(k + e, i);
  }
};

// Writes the tile's sums, row r of them to row_of(r), through shared memory that nobody reads any
// more. `bias`: of each column, added to the rounded sums; null: none.
template <class T, int rows, int columns, class Sums, class RowOf>
__device__ void store_tile(const Sums& sums, char* memory, const RowOf& row_of, bool packets,
                           int more_rows, int more_columns, const T* bias = nullptr) {
  using Tile = ProductTile<T, rows, columns>;
  const Tile tile{memory};
  __syncthreads();
  sums.each([&](unsigned r, unsigned c, float x) {
    T y = rounded<T>(x);
    if (bias && int(c) < more_columns) y = rounded<T>(get(y) + get(bias[c]));
    *tile.from(tile.offset(r, c)) = y;
  });
  __syncthreads();
  constexpr int in_row = columns / Tile::packet;
  const int c = int(threadIdx.x) % in_row * Tile::packet, left = more_columns - c;
#pragma unroll 1
  for (int r = int(threadIdx.x) / in_row; r < rows && r < more_rows;
       r += kProductThreads / in_row) {
    const T* from = tile.place(r, c);
    T* to = row_of(r) + c;
    if (packets && left >= Tile::packet)
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    else
      for (int i = 0; i < Tile::packet && i < left; ++i) to[i] = from[i];
  }
}

// The same to rows of y, one after another.
template <class T, int rows, int columns, class Sums>
__device__ void store_sums(const Sums& sums, char* memory, T* y, int64_t y_row, bool packets,
                           int more_rows, int more_columns, const T* bias = nullptr) {
  store_tile<T, rows, columns>(
      sums, memory, [&](int r) { return y + r * y_row; }, packets, more_rows, more_columns, bias);
}

template <class T, bool a_along, bool b_along, int rows, int columns, class Sums>
__device__ void window_product(const WindowProductArgs& x) {
  using LoadA = ProductLoader<T, a_along, rows>;
  using LoadB = ProductLoader<T, b_along, columns>;
  constexpr int depth = LoadA::Tile::depth, stage = LoadA::Tile::bytes + LoadB::Tile::bytes;
  char* const memory = dynamic_shared();
  const auto a = [&](int i) { return typename LoadA::Tile{{memory + i % kProductStages * stage}}; };
  const auto b = [&](int i) {
    return typename LoadB::Tile{{memory + i % kProductStages * stage + LoadA::Tile::bytes}};
  };
  const int tile = int(blockIdx.x) % x.tiles, part = int(blockIdx.x) / x.tiles;
  const int m = tile / x.tiles_n * rows, n = tile % x.tiles_n * columns;
  const int leaf = part / x.parts * x.depth, begin = leaf + part % x.parts * x.chunk;
  const int end = begin + x.chunk < leaf + x.depth ? begin + x.chunk : leaf + x.depth;
  const int tiles = (end - begin + depth - 1) / depth;
  const LoadA load_a(x.a, m, x.m);
  const LoadB load_b(x.b, n, x.n);
  const auto load = [&](int i) {
    if (i < tiles) load_a.load(a(i), begin + i * depth, end);
    if (i < tiles) load_b.load(b(i), begin + i * depth, end);
    end_copies();
  };
  Sums sums;
  for (int i = 0; i < kProductStages - 1; ++i) load(i);
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    wait_copies_but<kProductStages - 2>();
    __syncthreads();
    load(i + kProductStages - 1);
    sums.add(a(i), b(i));
  }
  const int64_t group = blockIdx.y, parts = gridDim.x / unsigned(x.tiles);
  const T* const bias = x.bias ? static_cast<const T*>(x.bias) + group * x.bias_group + n : nullptr;
  if (x.sums)
    store_sums<float, rows, columns>(sums, memory,
                                     x.sums + ((group * parts + part) * x.m + m) * x.n + n, x.n,
                                     x.n % 4 == 0, x.m - m, x.n - n);
  else
    store_sums<T, rows, columns>(sums, memory,
                                 static_cast<T*>(x.y) + group * x.y_group + m * x.y_row + n,
                                 x.y_row, x.y_packets, x.m - m, x.n - n, bias);
}

}  // namespace orr_cuda
