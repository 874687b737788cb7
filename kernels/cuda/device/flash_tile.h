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

// Defines name_<width>_bf16 and so on, and name_bias_<width>_bf16, for a template of element, width
// and whether there is a bias.
#define ORR_FLASH_OF(name, biased, width, ...)                    \
  ORR_KERNEL(name##_##width##_bf16, kFlashThreads, AttentionArgs, \
             __VA_ARGS__<Bf16, width, biased>)                    \
  ORR_KERNEL(name##_##width##_f16, kFlashThreads, AttentionArgs, __VA_ARGS__<F16, width, biased>)
#define ORR_FLASH(name, width)           \
  ORR_FLASH_OF(name, false, width, name) \
  ORR_FLASH_OF(name##_bias, true, width, name)

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

  // The packet c columns, a multiple of 16, to the right of one of the first two of a row, which
  // begins at a multiple of 128 bytes.
  static __device__ const T* beside(const T* packet, int c) {
    return reinterpret_cast<const T*>(uintptr_t(packet) ^ c % 64 * sizeof(T)) + c / 64 * block;
  }
  // The rows [r, r + 16), columns [c, c + 16) as the left operand.
  __device__ OperandA left(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    OperandA x;
    load_matrices(x.x, beside(packet(r + lane % 16, lane / 16 * 8), c));
    return x;
  }
  // The same rows as columns of the right operand, for 16 columns of the product.
  __device__ TwoOperandsB right_rows(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    TwoOperandsB x;
    load_matrices(x.x, beside(packet(r + lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8), c));
    return x;
  }
  // The right operand: its rows are the rows [r, r + 16), its columns the columns [c, c + 16).
  __device__ TwoOperandsB right(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    TwoOperandsB x;
    load_transposed(x.x, beside(packet(r + lane % 16, lane / 16 * 8), c));
    return x;
  }
  // The columns [c, c + 16) as rows of the left operand, whose columns are the rows [r, r + 16).
  __device__ OperandA left_columns(int r, int c) const {
    const int lane = int(threadIdx.x) % 32;
    OperandA x;
    load_transposed(x.x, packet(r + lane % 8 + lane / 16 * 8, c + lane / 8 % 2 * 8));
    return x;
  }

  // The columns from c on, a multiple of 64.
  template <int columns>
  __device__ Tile<T, rows, columns> from_column(int c) const {
    return {at + c / 64 * block};
  }

  // For a warpgroup: all rows with 16 columns from c on, and 16 rows from r on with all columns.
  __device__ uint64_t some_columns(int c) const {
    return describe_matrix(at, (c / 64 * block + c % 64) * 2, 16);
  }
  __device__ uint64_t some_rows(int r) const { return describe_matrix(at, r * 64 * 2, block * 2); }
};

// Loads tiles of consecutive rows of a head, of n tensors at a time. A thread has one
// packet of every apart-th row.
template <class T, int rows, int width, int n>
class Loader {
 public:
  // Begins at row `first` of `count`.
  __device__ Loader(const AttentionArgs& a, const Heads (&x)[n], int head, int first, int count)
      : left_(column() < a.depth ? count - first - row() : 0),
        columns_(a.depth - column()),
        packets_(a.packets) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      from_[i] = uintptr_t(head_row<const T>(x[i], head, first + row()) + column());
      step_[i] = apart * x[i].row * int(sizeof(T));
    }
  }

  // Leaves out so many tiles.
  __device__ void skip(int tiles) {
#pragma unroll
    for (int i = 0; i < n; ++i) from_[i] += uint64_t(tiles) * uint64_t(rows / apart * step_[i]);
    left_ -= tiles * rows;
  }
  // Starts to load the next rows; zeros where there are none.
  __device__ void load(const Tile<T, rows, width> (&to)[n]) {
    if (packets_) {
#pragma unroll
      for (int j = 0; j < rows / apart; ++j)
#pragma unroll
        for (int i = 0; i < n; ++i) copy_async(at(to[i], j), row_of(i, j), j * apart < left_);
    } else {
#pragma unroll 1
      for (int e = 0; e < rows / apart * 8; ++e)
#pragma unroll
        for (int i = 0; i < n; ++i) {
          const bool present = e / 8 * apart < left_ && e % 8 < columns_;
          at(to[i], e / 8)[e % 8] = present ? row_of(i, e / 8)[e % 8] : T(0.0f);
        }
    }
#pragma unroll
    for (int i = 0; i < n; ++i) from_[i] += rows / apart * step_[i];
    left_ -= rows;
  }

 private:
  enum { packets = width / 8, apart = kFlashThreads / packets };
  static __device__ int row() { return int(threadIdx.x) / packets; }
  static __device__ int column() { return int(threadIdx.x) % packets * 8; }
  static __device__ T* at(const Tile<T, rows, width>& tile, int j) {
    const auto first = uintptr_t(tile.packet(row(), column()));  // permuted by row(), below apart
    return reinterpret_cast<T*>(first ^ unsigned(j * apart % 8 * 16)) + j * apart * 64;
  }

  __device__ const T* row_of(int i, int j) const {
    return reinterpret_cast<const T*>(from_[i] + uint64_t(j) * uint64_t(step_[i]));
  }

  uintptr_t from_[n];    // of pointers the compiler would keep two, for packets and elements
  int64_t step_[n];      // bytes
  int left_, columns_;   // rows and columns that follow
  const bool& packets_;  // read for each tile, which takes no register
};

// The products stand behind begin_products(); results are there when they have been awaited.

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
  if constexpr (width > 128) {  // more than one instruction sums
    add_product(p, b.template from_column<128>(0), reinterpret_cast<Result(&)[16]>(to[0]));
    add_product(p, b.template from_column<width - 128>(128),
                reinterpret_cast<Result(&)[width / 8 - 16]>(to[16]));
  } else if ORR_CONSTEXPR (kWarpgroups) {
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
// They pass through the warp's rows of a tile that nobody reads any more, whose first column is
// number `from` of the head.
template <class T, int width>
__device__ void store_rows(const AttentionArgs& a, const Heads& to, int first, int all,
                           const Tile<T, 64, width>& tile, const Result (&x)[width / 8], float low,
                           float high, int from = 0) {
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
  const int c = lane % packets * 8;
  T* const head = head_row<T>(to, int(blockIdx.y), first) + from + c;
  for (int row = r + lane / packets; row < r + 16; row += 32 / packets) {
    if (first + row >= all || from + c >= a.depth) break;
    T* place = head + row * to.row;
    const T* packet = tile.packet(row, c);
    if (a.packets)
      *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(packet);
    else
      for (int j = 0; j < 8 && from + c + j < a.depth; ++j) place[j] = packet[j];
  }
}

// This lane's first column in a tile whose first column is number `first`.
__device__ inline int lane_column(int first) { return first + int(threadIdx.x) % 4 * 2; }

// Scores of this lane's two rows, 0 and 1, become -infinity in the columns that are `hidden`, which
// are counted from this lane's first one.
template <int columns, class F>
__device__ void mask(F hidden, Result (&scores)[columns]) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (hidden(n * 8 + i % 2, i / 2)) scores[n].x[i] = -HUGE_VALF;
}

// The same where columns are keys from `first` on and the rows are the queries t and t + 8: keys
// behind the last that these see, and before the first. Apart, they take fewer registers.
template <int columns>
__device__ void mask_keys_behind(const AttentionArgs& a, int first, int t,
                                 Result (&scores)[columns]) {
  const int key = lane_column(first), ends[2] = {end_key(a, t) - key, end_key(a, t + 8) - key};
  mask([&](int column, int h) { return column >= ends[h]; }, scores);
}
template <int columns>
__device__ void mask_keys_before(const AttentionArgs& a, int first, int t,
                                 Result (&scores)[columns]) {
  const int key = lane_column(first);
  const int begins[2] = {first_key(a, t) - key, first_key(a, t + 8) - key};
  mask([&](int column, int h) { return column < begins[h]; }, scores);
}

// What dropout leaves out of this lane's rows r and r + 8 of a tile with n * 8 columns, of which
// the first is number `first`: a bit for each element. Rows are keys and columns queries, or the
// other way around. To be called where few registers are in use: random numbers take many.
template <bool of_keys, int n>
__device__ uint32_t left_out(const AttentionArgs& a, int r, int first) {
  static_assert(4 * n <= 32);
  const Dropout dropout(a, head_of_queries<of_keys>());
  const int column = lane_column(first);
  uint32_t bits = 0;
#pragma unroll 1
  for (int e = 0; e < 4 * n; ++e) {
    const int row = r + e % 4 / 2 * 8, c = column + e / 4 * 8 + e % 2;
    bits |= uint32_t(of_keys ? dropout.leaves_out(c, row) : dropout.leaves_out(row, c)) << e;
  }
  return bits;
}

// Elements that are left out become 0, others are multiplied by `factor`.
template <int n>
__device__ void leave_out(uint32_t bits, float factor, Result (&x)[n]) {
#pragma unroll
  for (int e = 0; e < 4 * n; ++e)
    x[e / 4].x[e % 4] = bits >> e & 1 ? 0.0f : x[e / 4].x[e % 4] * factor;
}

// Folds the values of the four lanes that share a row.
template <class F>
__device__ float fold_row(float x, F f) {
  x = f(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return f(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

}  // namespace orr_cuda
