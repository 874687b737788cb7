// SPDX-License-Identifier: Apache-2.0
//
// Grouped products in f64, element by element in the order of ops.h; and the rows without a matrix.
#include "grouped_product.h"
#include "index.h"
#include "kernel.h"

namespace orr_cuda {
namespace {

enum { kBlock = 256 };  // ORR_MATMUL_K

__device__ int64_t thread_number() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

// The sum of term(a, b) over [0, n), in blocks.
template <class Term>
__device__ double block_sums(int64_t n, Term term) {
  double total = 0;
  for (int64_t k = 0; k < n; k += kBlock) {
    double sum = 0;
    for (int64_t i = k; i < n && i < k + kBlock; ++i) sum = term(i, sum);
    total = k == 0 ? sum : total + sum;
  }
  return total;
}

__device__ void gather_plain(const GatherProductArgs& x) {
  const int64_t place = thread_number() / x.n, column = thread_number() % x.n;
  if (place >= x.by.start[x.by.matrices]) return;
  int e = 0;
  while (x.by.start[e + 1] <= place) ++e;
  const int64_t row = x.by.order[place];
  const double* a = static_cast<const double*>(x.a.x) + row * x.a.row;
  const double* b = static_cast<const double*>(x.b.x) + e * x.matrix + column * x.b_column;
  static_cast<double*>(x.y)[row * x.n + column] =
      block_sums(x.depth, [&](int64_t k, double sum) { return fma(a[k], b[k * x.b.row], sum); });
}

__device__ void scatter_plain(const ScatterProductArgs& x) {
  const int64_t matrix = int64_t(x.m) * x.n, all = x.by.matrices * matrix;
  if (thread_number() >= all) return;
  const int64_t e = thread_number() / matrix, at = thread_number() % matrix;
  const double* a = static_cast<const double*>(x.a.x) + at / x.n;
  const double* b = static_cast<const double*>(x.b.x) + at % x.n;
  const int32_t* row = x.by.order + x.by.start[e];
  const int32_t* const end = x.by.order + x.by.start[e + 1];
  for (int node = 0; node < x.nodes; ++node) {
    double stack[32];
    int depth = 0;
    for (int leaf = 0; leaf < x.node[node].count; ++leaf) {
      const int64_t last = int64_t(x.node[node].first + leaf + 1) * x.leaf_rows;
      const int32_t* const first = row;
      while (row < end && *row < last) ++row;
      double sum = block_sums(row - first, [&](int64_t k, double s) {
        return fma(a[first[k] * x.a.row], b[first[k] * x.b.row], s);
      });
      for (int full = leaf; full & 1; full >>= 1) sum = stack[--depth] + sum;
      stack[depth++] = sum;
    }
    double sum = stack[--depth];
    while (depth > 0) sum = stack[--depth] + sum;
    static_cast<double*>(x.y)[node * all + thread_number()] = sum;
  }
}

__device__ void clear_row(const GatherNoneArgs& x) {
  const int64_t row = blockIdx.x;
  if (index_at(x.index, x.wide_index, row) != -1) return;
  uint16_t* const y = static_cast<uint16_t*>(x.y) + row * (x.bytes / 2);
  for (int64_t i = threadIdx.x; i < x.bytes / 2; i += kGroupedThreads) y[i] = 0;
}

}  // namespace

ORR_KERNEL(gather_product_f64, kGroupedThreads, GatherProductArgs, gather_plain)
ORR_KERNEL(scatter_product_f64, kGroupedThreads, ScatterProductArgs, scatter_plain)
ORR_KERNEL(gather_none, kGroupedThreads, GatherNoneArgs, clear_row)

}  // namespace orr_cuda
