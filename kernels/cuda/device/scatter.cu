// SPDX-License-Identifier: Apache-2.0
//
// The sums of scatter_add. A warp works on one row and as many columns as it has lanes, or packets
// of columns if all tensors are aligned to 16 bytes; it adds the row's tokens in order.
#include "kernel.h"
#include "packet.h"
#include "scatter.h"

namespace orr_cuda {
namespace {

// Where a warp stands: row, and its lane's first column.
struct ScatterPlace {
  int64_t row, column;
  __device__ explicit ScatterPlace(int width) {
    row = int64_t(blockIdx.x) * kScatterWarps + threadIdx.x / 32;
    column = (int64_t(blockIdx.y) * 32 + threadIdx.x % 32) * width;
  }
};

// y = base + sum, of `width` elements.
template <class T, int width>
__device__ void scatter_store(const ScatterArgs& a, int64_t at, const Acc<T>* sum) {
  const T* base = static_cast<const T*>(a.base);
  alignas(16) T result[width];
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const T rounded_sum = rounded<T>(sum[j]);
    result[j] = base ? rounded<T>(plus(get(base[at + j]), get(rounded_sum))) : rounded_sum;
  }
  copy_elements<width>(static_cast<T*>(a.y) + at, result);
}

template <class T, int width>
__device__ void scatter_rows(const ScatterArgs& a) {
  const ScatterPlace place(width);
  if (place.row >= a.rows || place.column >= a.columns) return;
  const int64_t at = place.row * a.columns + place.column;
  const int32_t begin = a.start[place.row], end = a.start[place.row + 1];
  if (a.base && begin == end) {
    if (a.base != a.y)
      copy_elements<width>(static_cast<T*>(a.y) + at, static_cast<const T*>(a.base) + at);
    return;
  }
  const T* dy = static_cast<const T*>(a.dy) + place.column;
  Acc<T> sum[width] = {};
#pragma unroll 8
  for (int32_t i = begin; i < end; ++i) {
    alignas(16) T x[width];
    copy_elements<width>(x, dy + a.order[i] * a.columns);
#pragma unroll
    for (int j = 0; j < width; ++j) sum[j] = plus(sum[j], get(x[j]));
  }
  scatter_store<T, width>(a, at, sum);
}

template <class T>
__device__ void scatter(const ScatterArgs& a) {
  scatter_rows<T, 1>(a);
}
template <class T>
__device__ void scatter_packets(const ScatterArgs& a) {
  scatter_rows<T, 16 / int(sizeof(T))>(a);
}

// With more than one leaf: each leaf's sum is rounded and the leaves are added in their tree. An
// empty leaf is +0. The stack holds one finished subtree for each level.
template <class T>
__device__ void scatter_leaves(const ScatterArgs& a) {
  using A = Acc<T>;
  const ScatterPlace place(1);
  if (place.row >= a.rows || place.column >= a.columns) return;
  const int64_t at = place.row * a.columns + place.column;
  int32_t i = a.start[place.row];
  const int32_t end = a.start[place.row + 1];
  if (a.base && i == end) {
    static_cast<T*>(a.y)[at] = static_cast<const T*>(a.base)[at];
    return;
  }
  for (int k = 0; k < a.nodes; ++k) {
    A stack[32];
    int depth = 0;
    for (int n = 0; n < a.node[k].count; ++n) {
      const int64_t last = (a.node[k].first + n + 1) * a.leaf_tokens;
      A sum = 0;
      for (; i < end && a.order[i] < last; ++i)
        sum = plus(sum, get(static_cast<const T*>(a.dy)[a.order[i] * a.columns + place.column]));
      sum = get(rounded<T>(sum));
      for (int full = n; full & 1; full >>= 1) sum = get(rounded<T>(plus(stack[--depth], sum)));
      stack[depth++] = sum;
    }
    A sum = stack[--depth];
    while (depth > 0) sum = get(rounded<T>(plus(stack[--depth], sum)));
    scatter_store<T, 1>(a, k * a.rows * a.columns + at, &sum);
  }
}

}  // namespace

ORR_NUMBER_KERNELS(scatter, 32 * kScatterWarps, ScatterArgs)
ORR_NUMBER_KERNELS(scatter_packets, 32 * kScatterWarps, ScatterArgs)
ORR_NUMBER_KERNELS(scatter_leaves, 32 * kScatterWarps, ScatterArgs)

}  // namespace orr_cuda
