// SPDX-License-Identifier: Apache-2.0
//
// Maps, maxima, and sums in the order of ops.h over a row of neighbouring elements. A function of
// the caller returns the vector at an offset; it gets Full{} or, in the tail, the number of lanes.
#pragma once

#include "tasks.h"
#include "vec.h"

namespace orr_cpu::ORR_ISA {

// The binary tree of ops.h over values that come in index order; a missing right child passes the
// left one on.
template <class S>
struct TreeSum {
  S part[48];
  int64_t count = 0;
  int depth = 0;

  ORR_INLINE void add(S x) {
    for (int64_t i = count++; i & 1; i >>= 1) x = part[--depth] + x;
    part[depth++] = x;
  }
  ORR_INLINE S total() {
    if (!depth) return S{};
    S x = part[--depth];
    while (depth) x = part[--depth] + x;
    return x;
  }
};

// Calls at(i, Full{}) for each whole vector of [first, last) and at(i, n) for the rest.
template <class At>
ORR_INLINE void each_vector(int64_t first, int64_t last, At&& at) {
  int64_t i = first;
  for (; i + kLanes <= last; i += kLanes) at(i, Full{});
  if (i < last) at(i, int(last - i));
}

// The sum of a block of at most ORR_SUM_BLOCK elements.
template <class V, class Term>
ORR_INLINE auto block_sum(int64_t first, int64_t last, Term&& term) {
  V acc = splat(decltype(sum_lanes(V{}))(0));
  int64_t i = first;
  for (; i + kLanes <= last; i += kLanes) acc = acc + term(i, Full{});
  if (i < last) acc = acc + keep_first(term(i, int(last - i)), V{}, int(last - i));
  return sum_lanes(acc);
}

// The row sum of `term` over n elements. Four blocks run side by side to hide the adder's latency.
template <class V, class Term>
ORR_INLINE auto row_sum(int64_t n, Term&& term) {
  using S = decltype(sum_lanes(V{}));
  constexpr int64_t B = ORR_SUM_BLOCK;
  if (n <= B) return block_sum<V>(0, n, term);
  TreeSum<S> tree;
  int64_t b = 0;
  for (; b + 4 * B <= n; b += 4 * B) {
    V a0 = splat(S(0)), a1 = a0, a2 = a0, a3 = a0;
    for (int64_t i = b; i < b + B; i += kLanes) {
      a0 = a0 + term(i, Full{});
      a1 = a1 + term(i + B, Full{});
      a2 = a2 + term(i + 2 * B, Full{});
      a3 = a3 + term(i + 3 * B, Full{});
    }
    tree.add(sum_lanes(a0));
    tree.add(sum_lanes(a1));
    tree.add(sum_lanes(a2));
    tree.add(sum_lanes(a3));
  }
  for (; b < n; b += B) tree.add(block_sum<V>(b, smaller(b + B, n), term));
  return tree.total();
}

// The largest element of a row of n >= 1; NaN if any is.
template <class T>
ORR_INLINE Scalar<T> row_max(const T* x, int64_t n) {
  using V = Vec<T>;
  V start = splat(load_one(x)), a = start, b = start, c = start, d = start;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = nan_max(a, load(x + i, Full{}));
    b = nan_max(b, load(x + i + kLanes, Full{}));
    c = nan_max(c, load(x + i + 2 * kLanes, Full{}));
    d = nan_max(d, load(x + i + 3 * kLanes, Full{}));
  }
  each_vector(i, n, [&](int64_t j, auto k) {
    if constexpr (sizeof(k) == sizeof(Full))
      a = nan_max(a, load(x + j, k));
    else
      a = nan_max(a, keep_first(load(x + j, k), start, k));
  });
  return max_lanes(nan_max(nan_max(a, b), nan_max(c, d)));
}

// How many rows a task should have at least, so that it is worth starting.
ORR_INLINE int64_t row_grain(int64_t columns) { return larger(1, 8192 / larger(1, columns)); }

}  // namespace orr_cpu::ORR_ISA
