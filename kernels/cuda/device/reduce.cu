// SPDX-License-Identifier: Apache-2.0
//
// The first stage of sums of neighbours: half a warp computes one block.
#include "fold_block.h"
#include "row_sum.h"

namespace orr_cuda {
namespace {

// The fold of a block of the elements x[length].
template <class T, class Fn>
__device__ Acc<T> fold_block(const void* x, int64_t block, int64_t length) {
  const int64_t first = block * ORR_SUM_BLOCK, end = first + ORR_SUM_BLOCK;
  return block_fold<Fn, Acc<T>>(first, end < length ? end : length, [=](int64_t i) {
    return Fn::term(get(static_cast<const T*>(x)[i]));
  });
}

template <class T, class Fn>
__device__ void reduce_rows_with(const ReduceArgs& a) {
  const int64_t half = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 16;
  if (half >= a.segments * a.entries) return;
  const T* x = static_cast<const T*>(a.x) + half / a.entries * a.length;
  const Acc<T> sum = fold_block<T, Fn>(x, half % a.entries, a.length);
  if (threadIdx.x % 16 == 0) store_fold<T>(a.out, 0, half, sum);
}

template <class T, class Fn>
__device__ void reduce_each_with(const ReduceEachArgs& a) {
  const int entry = int(blockIdx.x * blockDim.x + threadIdx.x) / 16;
  if (entry >= a.entries) return;
  int k = 0;
  for (int end = a.tensors; end - k > 1;) {
    const int middle = (k + end) / 2;
    (a.tensor[middle].first > entry ? end : k) = middle;
  }
  const EachTensor& t = a.tensor[k];
  const Acc<T> sum = fold_block<T, Fn>(t.x, entry - t.first, t.length);
  if (threadIdx.x % 16 == 0) static_cast<Acc<T>*>(a.work)[entry] = sum;
}

template <class T>
__device__ void reduce_each(const ReduceEachArgs& a) {
  with_fold<kFoldSum, kFoldSumOfSquares>(a.fn,
                                         [&](auto fn) { reduce_each_with<T, decltype(fn)>(a); });
}

template <class T>
__device__ void reduce_rows(const ReduceArgs& a) {
  with_fold<kFoldSum, kFoldSumOfSquares, kFoldMax, kFoldMin>(
      a.fn, [&](auto fn) { reduce_rows_with<T, decltype(fn)>(a); });
}

}  // namespace

ORR_REAL_KERNELS(reduce_each, kFoldThreads, ReduceEachArgs)
ORR_NUMBER_KERNELS(reduce_rows, kFoldThreads, ReduceArgs)

}  // namespace orr_cuda
