// SPDX-License-Identifier: Apache-2.0
//
// A block of threads, 32 columns by 8 rows, that folds the partial results of its rows; and the
// functions of reduce.
#pragma once

#include <orrery/ops.h>

#include "fold.h"
#include "kernel.h"

namespace orr_cuda {

template <class A>
__device__ inline A lowest() {
  return -HUGE_VAL;
}
template <>
__device__ inline int64_t lowest<int64_t>() {
  return INT64_MIN;
}

struct Sum {
  template <class A>
  __device__ static A start() {
    return A(0);
  }
  template <class A>
  __device__ static A term(A x) {
    return x;
  }
  template <class A>
  __device__ static A fold(A a, A b) {
    return plus(a, b);
  }
};
struct SumOfSquares : Sum {
  template <class A>
  __device__ static A term(A x) {
    return x * x;
  }
  __device__ static int64_t term(int64_t x) { return int64_t(uint64_t(x) * uint64_t(x)); }
};
struct Max : Sum {
  template <class A>
  __device__ static A start() {
    return lowest<A>();
  }
  template <class A>
  __device__ static A fold(A a, A b) {
    return larger(a, b);
  }
};
struct Min : Sum {
  template <class A>
  __device__ static A start() {
    return A(-1) - lowest<A>();
  }
  template <class A>
  __device__ static A fold(A a, A b) {
    return smaller(a, b);
  }
};

// Calls f with the function of this number.
template <class F>
__device__ void with_fold(int fn, F f) {
  switch (fn) {
    case kFoldSum: return f(Sum());
    case kFoldSumOfSquares: return f(SumOfSquares());
    case kFoldMax: return f(Max());
    default: return f(Min());
  }
}

template <class T>
__device__ void store_fold(const FoldOutput& out, int array, int64_t at, Acc<T> x) {
  if (out.rounded)
    static_cast<T*>(out.array[array])[at] = rounded<T>(x);
  else
    static_cast<Acc<T>*>(out.array[array])[at] = x;
}

// The place of a block in [segments, entries, columns].
struct FoldPlace {
  int64_t segment, entry, column;
  int x, y;

  __device__ FoldPlace(int64_t entries, int64_t columns) {
    const int64_t tiles = (columns + kFoldColumns - 1) / kFoldColumns;
    const int64_t block = blockIdx.x;
    segment = block / tiles / entries;
    entry = block / tiles % entries;
    x = int(threadIdx.x) % kFoldColumns;
    y = int(threadIdx.x) / kFoldColumns;
    column = block % tiles * kFoldColumns + x;
  }
};

// Folds the values of the first `count` rows of threads in the tree; row 0 gets the result. All
// threads of the block must call it.
template <class Fn, class A>
__device__ A fold_rows(const FoldPlace& place, A mine, int count) {
  __shared__ A part[kFoldRows][kFoldColumns];
  __syncthreads();
  part[place.y][place.x] = mine;
  for (int step = 1; step < kFoldRows; step *= 2) {
    __syncthreads();
    if (place.y % (2 * step) == 0 && place.y + step < count)
      part[place.y][place.x] = Fn::fold(part[place.y][place.x], part[place.y + step][place.x]);
  }
  return part[place.y][place.x];
}

// The rows [first, end) of a segment that this row of threads adds in the first stage, and how many
// rows of threads have any.
struct ColumnRows {
  int64_t first, end;
  int count;

  __device__ ColumnRows(const FoldPlace& place, int64_t length) {
    const int64_t blocks = (length + ORR_SUM_ROWS - 1) / ORR_SUM_ROWS;
    const int64_t left = blocks - place.entry * kFoldRows;
    first = (place.entry * kFoldRows + place.y) * ORR_SUM_ROWS;
    end = first + ORR_SUM_ROWS < length ? first + ORR_SUM_ROWS : length;
    count = left < kFoldRows ? int(left) : kFoldRows;
  }
};

// The sum in row order of term(r) for rows [first, end); +0 if there are none.
template <class Fn, class A, class Term>
__device__ A fold_column(int64_t first, int64_t end, Term term) {
  A x = Fn::template start<A>();
#pragma unroll 8
  for (int64_t r = first; r < end; ++r) x = Fn::fold(x, Fn::term(term(r)));
  return x;
}

}  // namespace orr_cuda
