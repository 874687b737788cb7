// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with at most three rows: b is read once, without packing. Sums have the same
// order as in every other matmul.
#pragma once

#include "matmul_plan.h"
#include "pack.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {

// `rows` holds A as [M][K] floats. `scratch` has room for two [M][kVectorCols].
template <class S, class Y, int M, Along kAlong>
struct MatmulVector {
  const MatmulPlan& p;
  const float* rows;
  const S* b;
  Y* y;
  float* scratch;

  void columns(int64_t g, int64_t first, int64_t last) const {
    for (int64_t n = first; n < last; n += kVectorCols)
      block(b + g * p.shape.b.batch + n * p.shape.b.col,
            y + g * p.shape.y.batch + n * p.shape.y.col, int(smaller(kVectorCols, last - n)));
  }

  void block(const S* from, Y* to, int cols) const {
    float *sum = scratch, *total = scratch + M * kVectorCols;
    int64_t k = 0;
    do {
      int64_t kc = smaller(p.shape.k - k, ORR_MATMUL_K);
      const S* at = from + k * p.shape.b.row;
      if (p.shape.b.row == 1)
        for (int c = 0; c < cols; c += 16) down(at + c * p.shape.b.col, k, kc, cols - c, sum + c);
      else
        across(at, k, kc, cols, sum);
      for (int i = 0; i < M * kVectorCols; i += 16)
        store(total + i, k ? load(total + i) + load(sum + i) : load(sum + i));
      k += kc;
    } while (k < p.shape.k);
    for (int m = 0; m < M; ++m)
      for (int c = 0; c < cols; ++c)
        store_one(to + m * p.shape.y.row + c * p.shape.y.col, total[m * kVectorCols + c]);
  }

  // Handles sixteen columns of b whose elements along K are neighbours in memory.
  void down(const S* from, int64_t k0, int64_t kc, int count, float* sum) const {
    const S* row[16];
    row_pointers(from, p.shape.b.col, count, row);
    v16f acc[M];
    for (int m = 0; m < M; ++m) acc[m] = splat(0.0f);
    Flushing<kAlong>::begin(acc, M);
    int64_t k = 0;
    for (; k + 4 <= kc; k += 4) {
      v16f column[4];
      load_columns(row, k, column);
      for (int i = 0; i < 4; ++i) {
        const int j = int(kth<kAlong>(i, 4));
        for (int m = 0; m < M; ++m)
          acc[m] = fma(splat(rows[m * p.shape.k + k0 + k + j]), column[j], acc[m]);
      }
    }
    for (; k < kc; ++k) {
      const int64_t at = kth<kAlong>(k, kc);
      alignas(64) float column[16];
      for (int i = 0; i < 16; ++i) column[i] = load_one(row[i] + at);
      for (int m = 0; m < M; ++m) {
        if (is_alone<kAlong>(k, kc)) acc[m] = acc[m] + splat(0.0f);
        acc[m] = fma(splat(rows[m * p.shape.k + k0 + at]), load(column), acc[m]);
      }
    }
    Flushing<kAlong>::end(acc, M);
    for (int m = 0; m < M; ++m) store(sum + m * kVectorCols, acc[m]);
  }

  // Handles rows of b in which columns are neighbours in memory, eight rows in one pass over the
  // sums.
  void across(const S* from, int64_t k0, int64_t kc, int cols, float* sum) const {
    for (int i = 0; i < M * kVectorCols; i += 16) store(sum + i, splat(0.0f));
    int64_t k = 0;
    for (; k + 8 <= kc; k += 8) several<8>(from + k * p.shape.b.row, k0 + k, cols, sum);
    for (; k + 2 <= kc; k += 2) several<2>(from + k * p.shape.b.row, k0 + k, cols, sum);
    if (k < kc) several<1>(from + k * p.shape.b.row, k0 + k, cols, sum);
  }

  template <int kSteps>
  void several(const S* from, int64_t k, int cols, float* sum) const {
    int c = 0;
    for (; c + 16 <= cols; c += 16) lanes<kSteps>(from + c, k, Full{}, sum + c);
    if (c < cols) lanes<kSteps>(from + c, k, cols - c, sum + c);
  }

  template <int kSteps, class Count>
  ORR_INLINE void lanes(const S* from, int64_t k, Count n, float* sum) const {
    v16f acc[M];
    for (int m = 0; m < M; ++m) acc[m] = load(sum + m * kVectorCols);
    Flushing<kAlong>::begin(acc, M);
#pragma GCC unroll 8
    for (int i = 0; i < kSteps; ++i) {
      const int64_t j = kth<kAlong>(i, kSteps);
      if (is_alone<kAlong>(i, kSteps))
        for (int m = 0; m < M; ++m) acc[m] = acc[m] + splat(0.0f);
      v16f x = load(from + j * p.shape.b.row, n);
      for (int m = 0; m < M; ++m) acc[m] = fma(splat(rows[m * p.shape.k + k + j]), x, acc[m]);
    }
    Flushing<kAlong>::end(acc, M);
    for (int m = 0; m < M; ++m) store(sum + m * kVectorCols, acc[m]);
  }
};

}  // namespace orr_cpu::ORR_ISA
