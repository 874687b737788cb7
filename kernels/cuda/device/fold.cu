// SPDX-License-Identifier: Apache-2.0
//
// The later stages of sums: entries are folded 64 at a time, leaves at the end.
#include "fold_block.h"

namespace orr_cuda {
namespace {

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

template <class T, class Fn>
__device__ void fold_with(const FoldArgs& a) {
  using A = Acc<T>;
  const int64_t groups = (a.entries + 63) / 64;
  const FoldPlace place(groups, a.columns);
  const int64_t left = a.entries - place.entry * 64;
  const int rows = left < 64 ? int(left + 7) / 8 : 8;
  A mine = Fn::template start<A>();
  if (place.y < rows && place.column < a.columns) {
    const int64_t first = place.entry * 64 + place.y * 8, n = a.entries - first;
    const int64_t at = (place.segment * a.entries + first) * a.columns + place.column;
    mine =
        fold_eight<Fn>(static_cast<const A*>(a.in[blockIdx.y]) + at, n < 8 ? int(n) : 8, a.columns);
  }
  mine = fold_rows<Fn>(place, mine, rows);
  if (place.y == 0 && place.column < a.columns)
    store_fold<T>(a.out, int(blockIdx.y),
                  (place.segment * groups + place.entry) * a.columns + place.column, mine);
}

template <class T>
__device__ void fold(const FoldArgs& a) {
  switch (a.fn) {
    case kFoldMax: return fold_with<T, Max>(a);
    case kFoldMin: return fold_with<T, Min>(a);
    default: return fold_with<T, Sum>(a);
  }
}

// One thread for each column. Every node rounds to the output's dtype.
template <class T>
__device__ void leaf_tree(const LeafTreeArgs& a) {
  using A = Acc<T>;
  const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= a.columns) return;
  A* in = static_cast<A*>(a.in[blockIdx.y]) + column;
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

ORR_NUMBER_KERNELS(fold, kFoldThreads, FoldArgs)
ORR_NUMBER_KERNELS(leaf_tree, kFoldThreads, LeafTreeArgs)

}  // namespace orr_cuda
