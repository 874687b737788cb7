// SPDX-License-Identifier: Apache-2.0
//
// A block of threads that folds the partial results of its rows of threads: 32 threads stand side
// by side in 8 rows, or where there is one column only, 1 in 256 rows. A thread has one column, or
// a packet of them. And the functions of reduce.
#pragma once

#include <orrery/ops.h>

#include <type_traits>

#include "fold.h"
#include "kernel.h"
#include "packet.h"

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

// How many columns 16 bytes of elements have; 1 for integers, whose sums take 8 bytes each.
template <class T>
constexpr int packet_columns = std::is_same_v<Acc<T>, int64_t> ? 1 : 16 / int(sizeof(T));

// The place of a thread in [segments, entries, columns]; `side` threads stand side by side, each
// with `width` columns.
template <int side = kFoldColumns, int width = 1>
struct FoldPlace {
  int64_t segment, entry, column;
  int x, y;

  __device__ FoldPlace(int64_t entries, int64_t columns) {
    const int64_t tiles = (columns + side * width - 1) / (side * width);
    const int64_t block = blockIdx.x;
    segment = block / tiles / entries;
    entry = block / tiles % entries;
    x = int(threadIdx.x) % side;
    y = int(threadIdx.x) / side;
    column = (block % tiles * side + x) * width;
  }
};

// Shared memory for n accumulators, the same in every call of one type and n.
template <class A, int n>
__device__ A* fold_memory() {
  __shared__ A memory[n];
  return memory;
}

// Folds the values of the first `count` rows of threads in the tree; row 0 gets the results. `part`
// has room for those of all threads. All threads of the block must call it.
template <class Fn, int side, int width, class A>
__device__ void fold_rows(const FoldPlace<side, width>& place, A* part, A (&mine)[width],
                          int count) {
  A* own = part + place.y * width * side + place.x;
  __syncthreads();
  for (int j = 0; j < width; ++j) own[j * side] = mine[j];
  for (int step = 1; step < kFoldThreads / side; step *= 2) {
    __syncthreads();
    if (place.y % (2 * step) != 0 || place.y + step >= count) continue;
    const A* other = own + step * width * side;
    for (int j = 0; j < width; ++j) own[j * side] = Fn::fold(own[j * side], other[j * side]);
  }
  for (int j = 0; j < width; ++j) mine[j] = own[j * side];
}

// The rows [first, end) of a segment that this row of threads adds in the first stage, and how many
// rows of threads have any.
struct ColumnRows {
  int64_t first, end;
  int count;

  template <class Place>
  __device__ ColumnRows(const Place& place, int64_t length) {
    const int64_t blocks = (length + ORR_SUM_ROWS - 1) / ORR_SUM_ROWS;
    const int64_t left = blocks - place.entry * kFoldRows;
    first = (place.entry * kFoldRows + place.y) * ORR_SUM_ROWS;
    end = first + ORR_SUM_ROWS < length ? first + ORR_SUM_ROWS : length;
    count = left < kFoldRows ? int(left) : kFoldRows;
  }
};

}  // namespace orr_cuda
