// SPDX-License-Identifier: Apache-2.0
//
// Sorts tokens by row. Atomics only count tokens and assign places, so that the order of a row's
// tokens is random at first; the last step sorts them, by counting for each token those before it.
#include "kernel.h"
#include "scatter.h"

namespace orr_cuda {
namespace {

__device__ int64_t thread_number() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ void scatter_clear(const ScatterSortArgs& a) {
  const int64_t i = thread_number();
  if (i <= a.rows) a.start[i] = 0;
}

__device__ bool in_table(const ScatterSortArgs& a, int64_t index) {
  return index >= 0 && index < a.rows;
}

__device__ void scatter_count(const ScatterSortArgs& a) {
  const int64_t i = thread_number();
  if (i >= a.tokens) return;
  const int64_t index = index_at(a.index, a.wide_index, i);
  if (in_table(a, index))
    atomicAdd(a.start + index, 1);
  else if (!a.skips || index != -1)
    report_late(a.late, i, index);
}

// Counts to beginnings, by one block that goes over them.
__device__ void scatter_scan(const ScatterSortArgs& a) {
  __shared__ int32_t warp_sum[kScanThreads / 32];
  const int rank = int(threadIdx.x), lane = rank % 32;
  int32_t before = 0;
  for (int64_t first = 0; first <= a.rows; first += kScanThreads) {
    const int64_t i = first + rank;
    const int32_t count = i < a.rows ? a.start[i] : 0;
    int32_t sum = count;
    for (int d = 1; d < 32; d *= 2) {
      const int32_t left = __shfl_up_sync(0xffffffffu, sum, unsigned(d));
      if (lane >= d) sum += left;
    }
    __syncthreads();
    if (lane == 31) warp_sum[rank / 32] = sum;
    __syncthreads();
    int32_t all = 0, mine = 0;
    for (int w = 0; w < kScanThreads / 32; ++w) {
      if (w == rank / 32) mine = all;
      all += warp_sum[w];
    }
    const int32_t begin = before + mine + sum - count;
    if (i <= a.rows) a.start[i] = begin;
    if (i < a.rows) a.cursor[i] = begin;
    before += all;
  }
}

__device__ void scatter_place(const ScatterSortArgs& a) {
  const int64_t i = thread_number();
  if (i >= a.tokens) return;
  const int64_t index = index_at(a.index, a.wide_index, i);
  if (in_table(a, index)) a.loose[atomicAdd(a.cursor + index, 1)] = int32_t(i);
}

__device__ void scatter_rank(const ScatterSortArgs& a) {
  const int64_t i = thread_number();
  if (i >= a.start[a.rows]) return;
  const int32_t token = a.loose[i];
  const int64_t row = index_at(a.index, a.wide_index, token);
  const int32_t begin = a.start[row], end = a.start[row + 1];
  int32_t rank = begin;
#pragma unroll 8
  for (int32_t j = begin; j < end; ++j) rank += a.loose[j] < token;
  a.order[rank] = token;
}

}  // namespace

ORR_KERNEL(scatter_sort_clear, kIndexThreads, ScatterSortArgs, scatter_clear)
ORR_KERNEL(scatter_sort_count, kIndexThreads, ScatterSortArgs, scatter_count)
ORR_KERNEL(scatter_sort_scan, kScanThreads, ScatterSortArgs, scatter_scan)
ORR_KERNEL(scatter_sort_place, kIndexThreads, ScatterSortArgs, scatter_place)
ORR_KERNEL(scatter_sort_rank, kIndexThreads, ScatterSortArgs, scatter_rank)

}  // namespace orr_cuda
