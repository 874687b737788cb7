// SPDX-License-Identifier: Apache-2.0
//
// The two orders in which ops.h adds: row sums (neighbours in memory) and column sums. Both are a
// binary tree over blocks, written as recursion so that no partial sum is stored.
#pragma once

#include <orrery/ops.h>

#include <algorithm>
#include <cstdint>

#include "element.h"

namespace reference {

enum { kLanes = 16, kColumns = 64 };

// The size of a tree's left child: the largest power of two below n. REQUIRES: n >= 2.
inline int64_t left_child(int64_t n) { return int64_t(std::bit_floor(uint64_t(n - 1))); }

// The sum of term(first + i) for i in [0, n), n <= ORR_SUM_BLOCK.
template <class A, class Term>
A block_sum(int64_t first, int64_t n, Term& term) {
  A lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lane[j] = plus(lane[j], term(first + i + j));
  for (int j = 0; i + j < n; ++j) lane[j] = plus(lane[j], term(first + i + j));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = plus(lane[j], lane[j + half]);
  return lane[0];
}

// The row sum of term(first + i) for i in [0, n).
template <class A, class Term>
A row_sum(int64_t first, int64_t n, Term&& term) {
  if (n <= ORR_SUM_BLOCK) return block_sum<A>(first, n, term);
  int64_t left = left_child((n + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK) * ORR_SUM_BLOCK;
  A l = row_sum<A>(first, left, term);
  return plus(l, row_sum<A>(first + left, n - left, term));
}
template <class A, class Term>
A row_sum(int64_t n, Term&& term) {
  return row_sum<A>(0, n, term);
}

// out[c] = the column sum of term(first + r, c) for r in [0, n). REQUIRES: columns <= kColumns.
template <class A, class Term>
void column_sum(int64_t first, int64_t n, int64_t columns, A* out, Term&& term) {
  if (n <= ORR_SUM_ROWS) {
    std::fill(out, out + columns, A(0));
    for (int64_t r = first; r < first + n; ++r)
      for (int64_t c = 0; c < columns; ++c) out[c] = plus(out[c], term(r, c));
    return;
  }
  int64_t left = left_child((n + ORR_SUM_ROWS - 1) / ORR_SUM_ROWS) * ORR_SUM_ROWS;
  A right[kColumns];
  column_sum(first, left, columns, out, term);
  column_sum(first + left, n - left, columns, right, term);
  for (int64_t c = 0; c < columns; ++c) out[c] = plus(out[c], right[c]);
}

}  // namespace reference
