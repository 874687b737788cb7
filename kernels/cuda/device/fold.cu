// SPDX-License-Identifier: Apache-2.0
//
// The stages of sums: half a warp computes a block of neighbours; then runs of entries are folded,
// and leaves at the end.
#include "fold_block.h"
#include "row_sum.h"

namespace orr_cuda {
namespace {

// The fold of a block of the elements x[length].
template <class T, class Fn>
__device__ Acc<T> fold_elements(const void* x, int64_t block, int64_t length) {
  const int64_t first = block * ORR_SUM_BLOCK, end = first + ORR_SUM_BLOCK;
  return block_fold<Fn, Acc<T>>(first, end < length ? end : length, [=](int64_t i) {
    return Fn::term(get(static_cast<const T*>(x)[i]));
  });
}

template <class T>
__device__ void reduce_rows(const ReduceArgs& a) {
  with_fold<kFoldSum, kFoldSumOfSquares, kFoldMax, kFoldMin>(a.fn, [&](auto fn) {
    const int64_t half = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 16;
    if (half >= a.segments * a.entries) return;
    const T* x = static_cast<const T*>(a.x) + half / a.entries * a.length;
    const Acc<T> sum = fold_elements<T, decltype(fn)>(x, half % a.entries, a.length);
    if (threadIdx.x % 16 == 0) store_fold<T>(a.out, 0, half, sum);
  });
}

template <class T>
__device__ void reduce_each(const ReduceEachArgs& a) {
  with_fold<kFoldSum, kFoldSumOfSquares>(a.fn, [&](auto fn) {
    const int entry = int(blockIdx.x * blockDim.x + threadIdx.x) / 16;
    if (entry >= a.entries) return;
    int k = 0;
    for (int end = a.tensors; end - k > 1;) {
      const int middle = (k + end) / 2;
      (a.tensor[middle].first > entry ? end : k) = middle;
    }
    const EachTensor& t = a.tensor[k];
    const Acc<T> sum = fold_elements<T, decltype(fn)>(t.x, entry - t.first, t.length);
    if (threadIdx.x % 16 == 0) static_cast<Acc<T>*>(a.work)[entry] = sum;
  });
}

// The tree over n <= 8 entries, `step` apart.
template <class Fn, class A>
__device__ A fold_eight(const A* from, int n, int64_t step) {
  A x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i < n) x[i] = from[i * step];
#pragma unroll
  for (int width = 1; width < 8; width *= 2)
#pragma unroll
    for (int i = 0; i < 8; i += 2 * width)
      if (i + width < n) x[i] = Fn::fold(x[i], x[i + width]);
  return x[0];
}

// The tree over n entries: eights of them are folded like a binary number is counted up. The sum of
// 2^l eights waits in kept[l] for its right neighbour.
template <class Fn, class A>
__device__ A fold_run(const A* from, int n, int64_t step) {
  constexpr int levels = 8;
  static_assert(kFoldLongest == 8 << (levels - 1));
  A kept[levels] = {}, sum = Fn::template start<A>();
  const int eights = (n + 7) / 8;
  for (int i = 0; i < eights; ++i) {
    sum = fold_eight<Fn>(from + i * 8 * step, n - i * 8 < 8 ? n - i * 8 : 8, step);
    bool waits = false;
#pragma unroll
    for (int l = 0; l < levels; ++l) {
      if (!waits && !(i >> l & 1)) kept[l] = sum, waits = true;
      if (!waits) sum = Fn::fold(kept[l], sum);
    }
  }
  bool first = true;
#pragma unroll
  for (int l = 0; l < levels; ++l)
    if (eights >> l & 1) sum = first ? kept[l] : Fn::fold(kept[l], sum), first = false;
  return sum;
}

// What a block folds of `left` entries, which begin at `from` in this thread's column: a run in
// each thread. Row 0 of the threads gets the result; all threads of the block must call it.
template <class Fn, int side, class A>
__device__ A fold_block(const FoldPlace<side>& place, const A* from, int64_t left, int run,
                        int64_t columns) {
  constexpr int all = kFoldThreads / side;
  const int64_t mine = left - place.y * run, rows = (left + run - 1) / run;
  A sum = Fn::template start<A>();
  if (mine > 0 && place.column < columns)
    sum = fold_run<Fn>(from + place.y * run * columns, mine < run ? int(mine) : run, columns);
  return fold_rows<Fn>(place, sum, rows < all ? int(rows) : all);
}

template <class T, class Fn, int side>
__device__ void fold_with(const FoldArgs& a) {
  using A = Acc<T>;
  const int64_t per_block = int64_t(a.run) * (kFoldThreads / side);
  const int64_t groups = (a.entries + per_block - 1) / per_block;
  const FoldPlace<side> place(groups, a.columns);
  const int64_t first = place.entry * per_block, at = place.segment * a.entries + first;
  const A* from = static_cast<const A*>(a.in.array[blockIdx.y]) + at * a.columns + place.column;
  const A sum = fold_block<Fn>(place, from, a.entries - first, a.run, a.columns);
  if (place.y == 0 && place.column < a.columns)
    store_fold<T>(a.out, int(blockIdx.y),
                  (place.segment * groups + place.entry) * a.columns + place.column, sum);
}

template <class T>
__device__ void fold(const FoldArgs& a) {
  with_fold<kFoldSum, kFoldMax, kFoldMin>(a.fn, [&](auto fn) {
    using Fn = decltype(fn);
    a.columns == 1 ? fold_with<T, Fn, 1>(a) : fold_with<T, Fn, kFoldColumns>(a);
  });
}

// A block for each tensor.
template <class T>
__device__ void fold_each(const ReduceEachArgs& a) {
  using A = Acc<T>;
  const FoldPlace<1> place(1, 1);
  const EachTensor& t = a.tensor[blockIdx.x];
  int run = 8;
  while (run * kFoldThreads < t.entries) run *= 2;
  const A sum = fold_block<Sum>(place, static_cast<const A*>(a.work) + t.first, t.entries, run, 1);
  if (place.y == 0) *static_cast<T*>(t.y) = rounded<T>(sum);
}

// One thread for each column. Every node rounds to the output's dtype.
template <class T>
__device__ void leaf_tree(const LeafTreeArgs& a) {
  using A = Acc<T>;
  const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= a.columns) return;
  A* in = static_cast<A*>(a.in.array[blockIdx.y]) + column;
  const auto node_of = [&](A x) { return a.out.rounded ? get(rounded<T>(x)) : x; };
  for (int k = 0; k < a.nodes; ++k) {
    const int first = a.node[k].first, count = a.node[k].count;
    for (int i = first; i < first + count; ++i) in[i * a.columns] = node_of(in[i * a.columns]);
    for (int step = 1; step < count; step *= 2)
      for (int i = first; i + step < first + count; i += 2 * step)
        in[i * a.columns] = node_of(plus(in[i * a.columns], in[(i + step) * a.columns]));
    store_fold<T>(a.out, int(blockIdx.y), k * a.columns + column, in[first * a.columns]);
  }
}

}  // namespace

ORR_REAL_KERNELS(reduce_each, kFoldThreads, ReduceEachArgs)
ORR_NUMBER_KERNELS(reduce_rows, kFoldThreads, ReduceArgs)
ORR_NUMBER_KERNELS(fold, kFoldThreads, FoldArgs)
ORR_REAL_KERNELS(fold_each, kFoldThreads, ReduceEachArgs)
ORR_NUMBER_KERNELS(leaf_tree, kFoldThreads, LeafTreeArgs)

}  // namespace orr_cuda
