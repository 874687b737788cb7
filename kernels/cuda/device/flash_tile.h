// SPDX-License-Identifier: Apache-2.0
//
// Tiles of rows of 16-bit elements in shared memory, and their products for attention. The distance
// of rows is 8 elements more than their length, so that the packets of one column in eight rows are
// in different banks. Columns beyond the head's depth are zeros.
#pragma once

#include "attention_place.h"
#include "mma.h"

namespace orr_cuda {

template <int width>
constexpr int kSixteens = flash_sixteens(width);
template <int width>
constexpr int kBlockRows = flash_rows(width);

template <class T, int width>
struct Tile {
  enum { stride = width + 8 };
  T* at;

  __device__ T* row(int r) const { return at + r * stride; }

  // Starts to load rows [first, first + count) of a head that has `all` rows; zeros for others.
  __device__ void load(const AttentionArgs& a, const Heads& x, int first, int count,
                       int all) const {
    constexpr int packets = width / 8;
    for (int e = int(threadIdx.x); e < count * packets; e += kFlashThreads) {
      const int r = e / packets, c = e % packets * 8;
      const bool present = first + r < all && c < a.depth;
      const T* from = head_row<const T>(a, x, present ? first + r : 0) + (present ? c : 0);
      if (a.packets)
        copy_async(row(r) + c, from, present);
      else
#pragma unroll 1
        for (int j = 0; j < 8; ++j) row(r)[c + j] = present && c + j < a.depth ? from[j] : T(0.0f);
    }
  }

  __device__ static void split(const uint32_t* four, OperandB* x) {
    x[0] = {{four[0], four[1]}};
    x[1] = {{four[2], four[3]}};
  }

  // The rows [r, r + 16), columns [c, c + 16) as the left operand.
  __device__ OperandA left(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    OperandA x;
    load_matrices(x.x, row(r + lane % 16) + c + lane / 16 * 8);
    return x;
  }
  // The same rows as columns of the right operand, for 16 columns of the product.
  __device__ void right_rows(int r, int c, OperandB* x) const {
    const int lane = int(threadIdx.x) % 32;
    uint32_t four[4];
    load_matrices(four, row(r + lane % 8 + lane / 16 * 8) + c + lane / 8 % 2 * 8);
    split(four, x);
  }
  // The right operand: its rows are the rows [r, r + 16), its columns the columns [c, c + 16).
  __device__ void right(int r, int c, OperandB* x) const {
    const int lane = int(threadIdx.x) % 32;
    uint32_t four[4];
    load_transposed(four, row(r + lane % 16) + c + lane / 16 * 8);
    split(four, x);
  }
};

// Computes the products of `sixteens` times 16 rows of `a`, from row r on, with the rows of b;
// to[m][n] has 16 rows and 8 columns.
template <int sixteens, int columns, class T, int width>
__device__ void product_of_rows(const Tile<T, width>& a, int r, const Tile<T, width>& b,
                                Result (&to)[sixteens][columns]) {
#pragma unroll
  for (int m = 0; m < sixteens; ++m)
#pragma unroll
    for (int n = 0; n < columns; ++n) to[m][n] = Result{};
#pragma unroll
  for (int c = 0; c < width; c += 16) {
    OperandA x[sixteens];
#pragma unroll
    for (int m = 0; m < sixteens; ++m) x[m] = a.left(r + m * 16, c);
#pragma unroll
    for (int n = 0; n < columns / 2; ++n) {
      OperandB y[2];
      b.right_rows(n * 16, c, y);
#pragma unroll
      for (int m = 0; m < sixteens; ++m) {
        multiply<T>(to[m][2 * n], x[m], y[0]);
        multiply<T>(to[m][2 * n + 1], x[m], y[1]);
      }
    }
  }
}

// Adds to to[m] the product of p[m], which has 16 rows, with the rows of b.
template <int sixteens, int columns, int wide, class T, int width>
__device__ void add_product(const Result (&p)[sixteens][columns], const Tile<T, width>& b,
                            Result (&to)[sixteens][wide]) {
#pragma unroll
  for (int j = 0; j < columns / 2; ++j) {
    OperandA x[sixteens];
#pragma unroll
    for (int m = 0; m < sixteens; ++m) x[m] = as_operand<T>(p[m], j);
#pragma unroll
    for (int n = 0; n < wide / 2; ++n) {
      OperandB y[2];
      b.right(j * 16, n * 16, y);
#pragma unroll
      for (int m = 0; m < sixteens; ++m) {
        multiply<T>(to[m][2 * n], x[m], y[0]);
        multiply<T>(to[m][2 * n + 1], x[m], y[1]);
      }
    }
  }
}

// Stores 16 rows of results, scaled by `low` and `high` for the two rows of this lane. They pass
// through the rows [r, r + 16) of a tile that only this warp uses.
template <class T, int width>
__device__ void store_rows(const AttentionArgs& a, const Heads& to, int first, int all,
                           const Tile<T, width>& tile, int r, const Result* x, float low,
                           float high) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < width / 8; ++n) {
    uint32_t* at = reinterpret_cast<uint32_t*>(tile.row(r + lane / 4) + n * 8 + lane % 4 * 2);
    at[0] = pack(T(), x[n].x[0] * low, x[n].x[1] * low);
    at[8 * Tile<T, width>::stride / 2] = pack(T(), x[n].x[2] * high, x[n].x[3] * high);
  }
  __syncwarp();
  constexpr int packets = width / 8;
  for (int e = lane; e < 16 * packets; e += 32) {
    const int row = e / packets, c = e % packets * 8;
    if (first + r + row >= all || c >= a.depth) continue;
    T* place = head_row<T>(a, to, first + r + row) + c;
    const T* from = tile.row(r + row) + c;
    if (a.packets)
      *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(from);
    else
      for (int j = 0; j < 8 && c + j < a.depth; ++j) place[j] = from[j];
  }
}

// Whether dropout leaves out element e of this lane's rows t and t + 8, which are queries, in a tile
// of keys from `first` on.
struct QueryRows {
  Dropout dropout;
  int t, column;

  __device__ QueryRows(const AttentionArgs& a, int t, int first)
      : dropout(a), t(t), column(first + int(threadIdx.x) % 4 * 2) {}
  __device__ bool operator()(int e) const {
    return dropout.leaves_out(t + e % 4 / 2 * 8, column + e / 4 * 8 + e % 2);
  }
};

// Applies dropout to the 16 rows and 8 * columns columns of a tile that this warp has: what
// leaves_out(e) says of this lane's element e becomes 0, the rest is multiplied by `factor`. Bits,
// because random numbers take much code, which would be there for each element.
template <int columns, class F>
__device__ void leave_out(F leaves_out, float factor, Result (&x)[columns]) {
  static_assert(4 * columns <= 32);
  uint32_t bits = 0;
#pragma unroll 1
  for (int e = 0; e < 4 * columns; ++e) bits |= uint32_t(leaves_out(e)) << e;
#pragma unroll
  for (int e = 0; e < 4 * columns; ++e)
    x[e / 4].x[e % 4] = bits >> e & 1 ? 0.0f : x[e / 4].x[e % 4] * factor;
}

// Folds the values of the four lanes that share a row.
template <class F>
__device__ float fold_row(float x, F f) {
  x = f(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return f(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

}  // namespace orr_cuda
