// SPDX-License-Identifier: Apache-2.0
//
// Tiles of rows of 16-bit elements in shared memory, and their products for attention. Of a row, 64
// columns are 128 bytes, whose packets of 16 bytes are permuted by the row (packet p of row r lies
// at p ^ r % 8), so that those of one column in eight rows are in different banks, and so that a
// warpgroup of sm_90a takes a tile as it lies. Columns beyond the head's depth are zeros.
#pragma once

#include "attention_place.h"
#include "warpgroup.h"

namespace orr_cuda {

constexpr float kLog2E = 1.44269504f;

// Defines name_<width>_bf16 and so on for a template of element and width.
#define ORR_FLASH(name, width)                                                       \
  ORR_KERNEL(name##_##width##_bf16, kFlashThreads, AttentionArgs, name<Bf16, width>) \
  ORR_KERNEL(name##_##width##_f16, kFlashThreads, AttentionArgs, name<F16, width>)

#ifndef ORR_TENSOR_CORE
// The block's dynamic shared memory.
__device__ inline char* tile_memory() {
  extern __shared__ __align__(1024) char tiles[];
  return tiles;
}
#endif

// Right operands of 8 columns each, side by side.
struct TwoOperandsB {
  uint32_t x[4];
};

// c[0], c[1] += a times the first, the second of b.
template <class T>
__device__ void multiply_two(Result* c, const OperandA& a, const TwoOperandsB& b) {
  multiply<T>(c[0], a, {{b.x[0], b.x[1]}});
  multiply<T>(c[1], a, {{b.x[2], b.x[3]}});
}

template <class T, int rows, int width>
struct Tile {
  enum { elements = rows * width, block = rows * 64 };
  T* at;

  // 8 elements from column c on, a multiple of 8.
  __device__ T* packet(int r, int c) const {
    return at + c / 64 * block + r * 64 + (c % 64 / 8 ^ r % 8) * 8;
  }

  // Starts to load the rows of a head from row `first` on; zeros where there are none.
  __device__ void load(const HeadRows<const T>& x, int first) const {
    constexpr int packets = width / 8, apart = kFlashThreads / packets;
    const int r0 = int(threadIdx.x) / packets, c = int(threadIdx.x) % packets * 8;
    T* const to = packet(r0, c);
    const T* const from = x.first + (first + r0) * x.step + c;
#pragma unroll
    for (int j = 0; j < rows / apart; ++j) {
      const bool present = first + r0 + j * apart < x.count && c < x.depth;
      const T* const row = from + j * (x.step * apart);
      if (x.packets)
        copy_async(to + j * apart * 64, present ? row : x.first, present);
      else
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
          to[j * apart * 64 + i] = present && c + i < x.depth ? row[i] : T(0.0f);
    }
  }

  // The rows [r, r + 16), columns [c, c + 16) as the left operand.
  __device__ OperandA left(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    OperandA x;
    load_matrices(x.x, packet(r + lane % 16, c + lane / 16 * 8));
    return x;
  }
  // The same rows as columns of the right operand, for 16 columns of the product.
  __device__ TwoOperandsB right_rows(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    TwoOperandsB x;
    load_matrices(x.x, packet(r + lane % 8 + lane / 16 * 8, c + lane / 8 % 2 * 8));
    return x;
  }
  // The right operand: its rows are the rows [r, r + 16), its columns the columns [c, c + 16).
  __device__ TwoOperandsB right(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    TwoOperandsB x;
    load_transposed(x.x, packet(r + lane % 16, c + lane / 16 * 8));
    return x;
  }

  // For a warpgroup: all rows with 16 columns from c on, and 16 rows from r on with all columns.
  __device__ uint64_t some_columns(int c) const {
    return describe_matrix(at + c / 64 * block + c % 64, 16);
  }
  __device__ uint64_t some_rows(int r) const { return describe_matrix(at + r * 64, 2 * block); }
};

// The products stand between begin_products() and end_products(), before which no result is there.

// Computes the product of this warp's 16 rows of `a` with the rows of b; to[n] has 8 columns.
template <int columns, class T, int width>
__device__ void product_of_rows(const Tile<T, 64, width>& a, const Tile<T, 8 * columns, width>& b,
                                Result (&to)[columns]) {
  if ORR_CONSTEXPR (kWarpgroups) {
#pragma unroll
    for (int c = 0; c < width; c += 16)
      Warpgroup<T>::rows(to, a.some_columns(c), b.some_columns(c), c > 0);
  } else {
#pragma unroll
    for (int n = 0; n < columns; ++n) to[n] = Result{};
#pragma unroll
    for (int c = 0; c < width; c += 16) {
      const OperandA x = a.left(int(threadIdx.x) / 32 * 16, c);
#pragma unroll
      for (int n = 0; n < columns / 2; ++n) multiply_two<T>(to + 2 * n, x, b.right_rows(n * 16, c));
    }
  }
}

// Results of 16 rows, 16 columns each, as left operands.
template <int n>
struct Operands {
  OperandA x[n];
};
template <class T, int columns>
__device__ Operands<columns / 2> as_operands(const Result (&p)[columns]) {
  Operands<columns / 2> all;
#pragma unroll
  for (int j = 0; j < columns / 2; ++j) all.x[j] = as_operand<T>(p, j);
  return all;
}

// Adds to `to` the product of p, which has 16 rows, with the rows of b.
template <int n, class T, int width>
__device__ void add_product(const Operands<n>& p, const Tile<T, 16 * n, width>& b,
                            Result (&to)[width / 8]) {
  if ORR_CONSTEXPR (kWarpgroups) {
#pragma unroll
    for (int j = 0; j < n; ++j) Warpgroup<T>::add(to, p.x[j], b.some_rows(j * 16));
  } else {
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
      for (int c = 0; c < width; c += 16) multiply_two<T>(to + c / 8, p.x[j], b.right(j * 16, c));
  }
}

// Waits until the tile that was loaded last is there for the products of all warps. None reads the
// tiles before it any more.
__device__ inline void await_tile() {
  wait_copies();
  publish_to_products();
  __syncthreads();
}

// Stores this warp's 16 rows of results, scaled by `low` and `high` for the two rows of this lane.
// They pass through the warp's rows of a tile that nobody reads any more.
template <class T, int width>
__device__ void store_rows(const AttentionArgs& a, const Heads& to, int first, int all,
                           const Tile<T, 64, width>& tile, const Result (&x)[width / 8], float low,
                           float high) {
  const int lane = int(threadIdx.x) % 32, r = int(threadIdx.x) / 32 * 16;
#pragma unroll
  for (int n = 0; n < width / 8; ++n)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float scale = h ? high : low;
      reinterpret_cast<uint32_t*>(tile.packet(r + lane / 4 + 8 * h, n * 8))[lane % 4] =
          pack(T(), x[n].x[2 * h] * scale, x[n].x[2 * h + 1] * scale);
    }
  __syncwarp();
  constexpr int packets = width / 8;
  for (int e = lane; e < 16 * packets; e += 32) {
    const int row = r + e / packets, c = e % packets * 8;
    if (first + row >= all || c >= a.depth) continue;
    T* place = head_row<T>(a, to, first + row) + c;
    const T* from = tile.packet(row, c);
    if (a.packets)
      *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(from);
    else
      for (int j = 0; j < 8 && c + j < a.depth; ++j) place[j] = from[j];
  }
}

// Scores of this lane's two rows, 0 and 1, become -infinity in the columns that are `hidden`, in a
// tile whose first column is number `first`.
template <int columns, class F>
__device__ void mask(int first, F hidden, Result (&scores)[columns]) {
  const int column = first + int(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (hidden(column + n * 8 + i % 2, i / 2)) scores[n].x[i] = -HUGE_VALF;
}

// The same where columns are keys and the rows are the queries t and t + 8.
template <int columns>
__device__ void mask_keys(const AttentionArgs& a, int first, int t, Result (&scores)[columns]) {
  const int ends[2] = {seen(a, t), seen(a, t + 8)};
  mask(
      first, [&](int key, int h) { return key >= ends[h]; }, scores);
}

// Whether dropout leaves out element e of this lane's rows r and r + 8, in a tile whose first
// column is number `first`. Rows are keys and columns queries, or the other way around.
template <bool of_keys>
struct LeftOut {
  Dropout dropout;
  int row, column;

  __device__ LeftOut(const AttentionArgs& a, int row, int first)
      : dropout(a), row(row), column(first + int(threadIdx.x) % 4 * 2) {}
  __device__ bool operator()(int e) const {
    const int r = row + e % 4 / 2 * 8, c = column + e / 4 * 8 + e % 2;
    return of_keys ? dropout.leaves_out(c, r) : dropout.leaves_out(r, c);
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
