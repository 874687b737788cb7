// SPDX-License-Identifier: Apache-2.0
//
// The first stage of reduce: half a warp computes one block of a row sum, a thread one block of a
// column sum.
#include "fold_block.h"
#include "row_sum.h"

namespace orr_cuda {
namespace {

template <class T, class Fn>
__device__ void reduce_rows_with(const ReduceArgs& a) {
  using A = Acc<T>;
  const int64_t half = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 16;
  if (half >= a.segments * a.entries) return;
  const int64_t first = half % a.entries * ORR_SUM_BLOCK, end = first + ORR_SUM_BLOCK;
  const T* x = static_cast<const T*>(a.x) + half / a.entries * a.length;
  const A sum = block_fold<Fn, A>(first, end < a.length ? end : a.length,
                                  [=](int64_t i) { return Fn::term(get(x[i])); });
  if (threadIdx.x % 16 == 0) store_fold<T>(a.out, 0, half, sum);
}

template <class T, class Fn>
__device__ void reduce_columns_with(const ReduceArgs& a) {
  using A = Acc<T>;
  const FoldPlace place(a.entries, a.columns);
  const ColumnRows rows(place, a.length);
  const T* x = static_cast<const T*>(a.x) + place.segment * a.length * a.columns + place.column;
  A mine = Fn::template start<A>();
  if (place.column < a.columns)
    mine =
        fold_column<Fn, A>(rows.first, rows.end, [=](int64_t r) { return get(x[r * a.columns]); });
  mine = fold_rows<Fn>(place, mine, rows.count);
  if (place.y == 0 && place.column < a.columns)
    store_fold<T>(a.out, 0, (place.segment * a.entries + place.entry) * a.columns + place.column,
                  mine);
}

template <class T>
__device__ void reduce_rows(const ReduceArgs& a) {
  with_fold(a.fn, [&](auto fn) { reduce_rows_with<T, decltype(fn)>(a); });
}

template <class T>
__device__ void reduce_columns(const ReduceArgs& a) {
  with_fold(a.fn, [&](auto fn) { reduce_columns_with<T, decltype(fn)>(a); });
}

}  // namespace

ORR_NUMBER_KERNELS(reduce_rows, kFoldThreads, ReduceArgs)
ORR_NUMBER_KERNELS(reduce_columns, kFoldThreads, ReduceArgs)

}  // namespace orr_cuda
