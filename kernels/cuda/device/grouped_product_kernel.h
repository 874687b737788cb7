// SPDX-License-Identifier: Apache-2.0
//
// The kernels of grouped_product.h on tiles: a block makes one tile of one matrix's product, whose
// elements are added in their order, so that no order depends on the other rows.
#pragma once

#include "grouped_product.h"
#include "window_product_kernel.h"

namespace orr_cuda {

// Loads tiles of consecutive K of an operand whose rows are those of a list, or without one follow
// one another; `extent` of its rows or columns are the product's, from `first` of `count` on.
template <class T, bool k_along, int extent>
class RowLoader {
 public:
  using Tile = OperandTile<T, k_along, extent>;

  __device__ RowLoader(const GroupedOperand& x, int64_t begin, const int32_t* list, int first,
                       int count)
      : x_(static_cast<const T*>(x.x) + begin),
        list_(list),
        row_(x.row),
        packets_(x.packets != 0),
        first_(first),
        count_(count) {}

  // Starts to load the tile of K from k on; zeros from `end` on.
  __device__ void load(const Tile& to, int k, int end) const {
    const int r0 = k_along ? first_ : k, rows = (k_along ? count_ : end) - r0;
    const int c0 = k_along ? k : first_, columns = (k_along ? end : count_) - c0;
    if (packets_)
      load_packets(to, r0, rows, c0, columns);
    else
      load_elements(to, r0, rows, c0, columns);
  }

 private:
  __device__ const T* row(int r) const { return x_ + (list_ ? int64_t(list_[r]) : r) * row_; }

  __device__ void load_packets(const Tile& to, int r0, int rows, int c0, int columns) const {
    constexpr int in_row = Tile::columns / Tile::packet, apart = kProductThreads / in_row;
    const int c = int(threadIdx.x) % in_row * Tile::packet;
#pragma unroll 4
    for (int r = int(threadIdx.x) / in_row; r < Tile::rows; r += apart) {
      const bool present = r < rows && c < columns;
      copy_async(to.place(r, c), present ? row(r0 + r) + c0 + c : x_, present);
    }
  }

  __device__ void load_elements(const Tile& to, int r0, int rows, int c0, int columns) const {
    constexpr int apart = kProductThreads / Tile::columns;
    const int c = int(threadIdx.x) % Tile::columns;
#pragma unroll 1
    for (int r = int(threadIdx.x) / Tile::columns; r < Tile::rows; r += apart)
      *to.place(r, c) = r < rows && c < columns ? row(r0 + r)[c0 + c] : T(0.0f);
  }

  const T* x_;
  const int32_t* list_;
  int64_t row_;
  bool packets_;
  int first_, count_;
};

// Adds all of K to the sums of a tile.
template <class LoadA, class LoadB, class Sums>
__device__ void add_tiles(const LoadA& load_a, const LoadB& load_b, int end, char* memory,
                          Sums& sums) {
  using TileA = typename LoadA::Tile;
  using TileB = typename LoadB::Tile;
  constexpr int depth = TileA::depth, stage = TileA::bytes + TileB::bytes;
  const auto a = [&](int i) { return TileA{{memory + i % kProductStages * stage}}; };
  const auto b = [&](int i) { return TileB{{memory + i % kProductStages * stage + TileA::bytes}}; };
  const int tiles = (end + depth - 1) / depth;
  const auto load = [&](int i) {
    if (i < tiles) load_a.load(a(i), i * depth, end);
    if (i < tiles) load_b.load(b(i), i * depth, end);
    end_copies();
  };
  for (int i = 0; i < kProductStages - 1; ++i) load(i);
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    wait_copies_but<kProductStages - 2>();
    __syncthreads();
    load(i + kProductStages - 1);
    sums.add(a(i), b(i));
  }
  wait_copies();
}

// Tiles of a matrix follow those of the one before; blocks behind the last have nothing to do.
template <class T, bool b_along, int rows, int columns, class Sums>
__device__ void gather_product(const GatherProductArgs& x) {
  int tile = int(blockIdx.x) / x.tiles_n, e = 0;
  for (; e < x.by.matrices; ++e) {
    const int tiles = (x.by.start[e + 1] - x.by.start[e] + rows - 1) / rows;
    if (tile < tiles) break;
    tile -= tiles;
  }
  if (e == x.by.matrices) return;
  const int m = tile * rows, n = int(blockIdx.x) % x.tiles_n * columns;
  const int32_t* list = x.by.order + x.by.start[e];
  const int count = x.by.start[e + 1] - x.by.start[e];
  char* const memory = dynamic_shared();
  const RowLoader<T, true, rows> load_a(x.a, 0, list, m, count);
  const RowLoader<T, b_along, columns> load_b(x.b, e * x.matrix, nullptr, n, x.n);
  Sums sums;
  add_tiles(load_a, load_b, x.depth, memory, sums);
  T* const y = static_cast<T*>(x.y) + n;
  store_tile<T, rows, columns>(
      sums, memory, [&](int r) { return y + int64_t(list[m + r]) * x.n; }, x.y_packets, count - m,
      x.n - n);
}

// The first of order[begin, end) that is `row` or behind it.
__device__ inline int first_row(const int32_t* order, int begin, int end, int64_t row) {
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (order[middle] < row)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <class T, int rows, int columns, class Sums>
__device__ void scatter_product(const ScatterProductArgs& x) {
  const int m = int(blockIdx.x) / x.tiles_n * rows, n = int(blockIdx.x) % x.tiles_n * columns;
  const int e = int(blockIdx.y), leaf = int(blockIdx.z);
  const int begin =
      first_row(x.by.order, x.by.start[e], x.by.start[e + 1], int64_t(leaf) * x.leaf_rows);
  const int end = first_row(x.by.order, begin, x.by.start[e + 1], int64_t(leaf + 1) * x.leaf_rows);
  char* const memory = dynamic_shared();
  const RowLoader<T, false, rows> load_a(x.a, 0, x.by.order + begin, m, x.m);
  const RowLoader<T, false, columns> load_b(x.b, 0, x.by.order + begin, n, x.n);
  Sums sums;
  add_tiles(load_a, load_b, end - begin, memory, sums);
  const int64_t matrix = int64_t(leaf) * x.by.matrices + e, at = (matrix * x.m + m) * x.n + n;
  if (x.sums)
    store_sums<float, rows, columns>(sums, memory, x.sums + at, x.n, x.n % 4 == 0, x.m - m,
                                     x.n - n);
  else
    store_sums<T, rows, columns>(sums, memory, static_cast<T*>(x.y) + at, x.n, x.y_packets, x.m - m,
                                 x.n - n);
}

}  // namespace orr_cuda

#define ORR_GROUPED_PRODUCTS(dtype, T, Sums)                                         \
  namespace orr_cuda {                                                               \
  ORR_KERNEL_BLOCKS(gather_product_k_##dtype, kProductThreads, 2, GatherProductArgs, \
                    gather_product<T, true, 64, 128, Sums<64, 128>>)                 \
  ORR_KERNEL_BLOCKS(gather_product_n_##dtype, kProductThreads, 2, GatherProductArgs, \
                    gather_product<T, false, 64, 128, Sums<64, 128>>)                \
  ORR_KERNEL_BLOCKS(scatter_product_##dtype, kProductThreads, 2, ScatterProductArgs, \
                    scatter_product<T, 64, 128, Sums<64, 128>>)                      \
  }
