// SPDX-License-Identifier: Apache-2.0
//
// Loads tiles of operands that are views of more dims than two.
#pragma once

#include "product_tile.h"
#include "window_product.h"

namespace orr_cuda {

__device__ inline uint32_t quotient(uint32_t n, const Divisor& d) {
  return (uint32_t(uint64_t(n) * d.factor >> 32) + n) >> d.shift;
}

// Where in the tensor an index of the joined dim is.
__device__ inline int32_t offset_of(const JoinedIndex& x, int index) {
  uint32_t i = uint32_t(index);
  int32_t offset = 0;
#pragma unroll 1
  for (int d = x.count - 1; d > 0; --d) {
    const uint32_t q = quotient(i, x.dims[d]);
    offset += int32_t(i - q * x.dims[d].by) * x.strides[d];
    i = q;
  }
  return offset + int32_t(i) * x.strides[0];
}

// Loads tiles of consecutive K of `extent` rows or columns, from `first` of `count` on. A thread
// has one packet of every apart-th row.
template <class T, bool k_along, int extent>
class ProductLoader {
 public:
  using Tile = OperandTile<T, k_along, extent>;

  __device__ ProductLoader(const ProductOperand& x, int first, int count)
      : x_(x),
        source_(static_cast<const T*>(x.x) + int64_t(blockIdx.y) * x.group),
        first_(first),
        count_(count) {
    if (!x.packets) return;
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      const int at = first + (k_along ? row() + i * apart : column());
      fixed_[i] = at < count ? offset_of(k_along ? x.across : x.along, at) : -1;
    }
  }

  // Starts to load the tile of K from k on; zeros from `end` on.
  __device__ void load(const Tile& to, int k, int end) const {
    if (x_.packets)
      load_packets(to, k, end);
    else
      load_elements(to, k, end);
  }

 private:
  static constexpr int in_row = Tile::columns / Tile::packet, apart = kProductThreads / in_row,
                       passes = Tile::rows / apart, kept = k_along ? passes : 1;
  static __device__ int row() { return int(threadIdx.x) / in_row; }
  static __device__ int column() { return int(threadIdx.x) % in_row * Tile::packet; }

  __device__ void load_packets(const Tile& to, int k, int end) const {
    const int own = k_along ? k + column() : 0;
    const int32_t there = own < end ? offset_of(x_.along, own) : 0;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      const int at = k_along ? own : k + row() + i * apart;
      const bool present = at < end && fixed_[k_along ? i : 0] >= 0;
      const int32_t moving = k_along ? there : present ? offset_of(x_.across, at) : 0;
      copy_async(to.place(row() + i * apart, column()),
                 source_ + (present ? fixed_[k_along ? i : 0] + moving : 0), present);
    }
  }

  __device__ void load_elements(const Tile& to, int k, int end) const {
    constexpr int rows_apart = kProductThreads / Tile::columns;
    const int c = int(threadIdx.x) % Tile::columns, column = c + (k_along ? k : first_);
    const bool inside = column < (k_along ? end : count_);
    const int32_t there = inside ? offset_of(x_.along, column) : 0;
#pragma unroll 1
    for (int r = int(threadIdx.x) / Tile::columns; r < Tile::rows; r += rows_apart) {
      const int row = r + (k_along ? first_ : k);
      const bool present = inside && row < (k_along ? count_ : end);
      *to.place(r, c) = present ? source_[offset_of(x_.across, row) + there] : T(0.0f);
    }
  }

  const ProductOperand& x_;
  const T* source_;  // the group's
  int first_, count_;
  int32_t fixed_[kept];  // by pass, or of the column: where it is; -1: outside
};

}  // namespace orr_cuda
