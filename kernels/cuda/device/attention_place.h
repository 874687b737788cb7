// SPDX-License-Identifier: Apache-2.0
//
// Which keys a query sees, and where the rows of a head lie.
#pragma once

#include "attention.h"
#include "kernel.h"

namespace orr_cuda {

// Query t sees the keys [0, seen(t)).
__device__ inline int seen(const AttentionArgs& a, int t) {
  if (!a.causal) return a.keys;
  const int n = t + 1 + a.keys - a.queries;
  return n < 0 ? 0 : n < a.keys ? n : a.keys;
}
// The first query that sees key s.
__device__ inline int first_query(const AttentionArgs& a, int s) {
  const int t = a.causal ? s - a.keys + a.queries : 0;
  return t < 0 ? 0 : t;
}

// Row `row` of the block's head; blockIdx.y is batch * heads + head.
template <class T>
__device__ T* head_row(const AttentionArgs& a, const Heads& x, int row) {
  const int64_t b = blockIdx.y / unsigned(a.heads), h = blockIdx.y % unsigned(a.heads);
  return static_cast<T*>(x.data) + b * x.batch + h * x.head + row * x.row;
}

// Where the statistics of the block's head begin.
__device__ inline int64_t first_statistic(const AttentionArgs& a) {
  return int64_t(blockIdx.y) * a.queries;
}

}  // namespace orr_cuda
