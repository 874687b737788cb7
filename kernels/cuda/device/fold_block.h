// SPDX-License-Identifier: Apache-2.0
//
// A block of threads that folds the partial results of its rows of threads: 8 threads, whose floats
// are 32 bytes, stand side by side in 32 rows, or 1 in 256 rows where there is one column only. The
// functions of reduce.
#pragma once

#include <orrery/ops.h>

#include "fold.h"
#include "kernel.h"

namespace orr_cuda {

// The function of this number (fold.h): where it begins, what it makes of an element, and of two
// results.
template <int fn>
struct FoldBy {
  template <class A>
  __device__ static A lowest() {
    if constexpr (std::is_same_v<A, int64_t>)
      return INT64_MIN;
    else
      return -HUGE_VAL;
  }
  template <class A>
  __device__ static A start() {
    return fn == kFoldMax ? lowest<A>() : fn == kFoldMin ? A(-1) - lowest<A>() : A(0);
  }
  template <class A>
  __device__ static A term(A x) {
    using Wraps = std::conditional_t<std::is_same_v<A, int64_t>, uint64_t, A>;
    return fn == kFoldSumOfSquares ? A(Wraps(x) * Wraps(x)) : x;
  }
  template <class A>
  __device__ static A fold(A a, A b) {
    return fn == kFoldMax ? larger(a, b) : fn == kFoldMin ? smaller(a, b) : plus(a, b);
  }
};
using Sum = FoldBy<kFoldSum>;

// Calls f with the function of this number, which is one of `fns`.
template <int... fns, class F>
__device__ void with_fold(int fn, F f) {
  ((fn == fns ? f(FoldBy<fns>()) : void()), ...);
}

template <class T>
__device__ void store_fold(const FoldOutput& out, int array, int64_t at, Acc<T> x) {
  if (out.rounded)
    static_cast<T*>(out.array[array])[at] = rounded<T>(x);
  else
    static_cast<Acc<T>*>(out.array[array])[at] = x;
}

// The place of a thread in [segments, entries, columns]; `side` threads stand side by side.
template <int side>
struct FoldPlace {
  int64_t segment, entry, column;
  int x, y;

  __device__ FoldPlace(int64_t entries, int64_t columns) {
    const int64_t tiles = (columns + side - 1) / side, block = blockIdx.x;
    segment = block / tiles / entries;
    entry = block / tiles % entries;
    x = int(threadIdx.x) % side;
    y = int(threadIdx.x) / side;
    column = block % tiles * side + x;
  }
};

// Folds the values of the first `count` rows of threads in the tree; row 0 gets the result. All
// threads of the block must call it.
template <class Fn, int side, class A>
__device__ A fold_rows(const FoldPlace<side>& place, A mine, int count) {
  __shared__ A part[kFoldThreads];
  A* own = part + place.y * side + place.x;
  *own = mine;
  for (int step = 1; step < kFoldThreads / side; step *= 2) {
    __syncthreads();
    if (place.y % (2 * step) == 0 && place.y + step < count)
      *own = Fn::fold(*own, own[step * side]);
  }
  return *own;
}

}  // namespace orr_cuda
