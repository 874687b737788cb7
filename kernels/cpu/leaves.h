// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch, leaf by leaf, and adds the leaves to nodes of the tree (ops.h).
#pragma once

#include "rows.h"

namespace orr_cpu::ORR_ISA {

struct Leaves {
  explicit Leaves(const orr_op& op)
      : lo(attr_int(op, "leaf_lo", 0)),
        n(attr_int(op, "leaf_n", 1)),
        total(attr_int(op, "leaf_total", 1)) {}
  int64_t lo, n, total;
};

// Calls sum(i) for every leaf, i counting from leaf lo, and write(node, value) for every node that
// the leaves complete. Values are of type V (one number or several lanes), and rounded to Y at each
// node.
template <class Y, class V, class Sum, class Write>
ORR_INLINE void each_node(const Leaves& leaves, Sum&& sum, Write&& write) {
  int64_t at = leaves.lo, leaf = 0;
  for (int64_t node = 0;; ++node) {
    int64_t count = orr_tree_node(&at, leaves.lo + leaves.n, leaves.total);
    if (!count) return;
    V part[48];
    int depth = 0;
    for (int64_t k = 0; k < count; ++k) {
      V x = rounded<Y>(sum(leaf++));
      for (int64_t i = k; i & 1; i >>= 1) x = rounded<Y>(part[--depth] + x);
      part[depth++] = x;
    }
    V x = part[--depth];
    while (depth) x = rounded<Y>(part[--depth] + x);
    write(node, x);
  }
}

// The column sums of term(row, c) over rows [first, last) for W vectors c, into sum[W].
template <class V, int W, class Term>
ORR_INLINE void column_sum(int64_t first, int64_t last, Term&& term, V* sum) {
  TreeSum<V> tree[W];
  for (int64_t block = first; block < last; block += ORR_SUM_ROWS) {
    V acc[W] = {};
    int64_t end = smaller(block + ORR_SUM_ROWS, last);
    for (int64_t r = block; r < end; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < W; ++c) acc[c] = acc[c] + term(r, c);
    }
    for (int c = 0; c < W; ++c) tree[c].add(acc[c]);
  }
  for (int c = 0; c < W; ++c) sum[c] = tree[c].total();
}

template <class V, int W>
struct Lanes {
  V v[W];
};
template <class V, int W>
ORR_INLINE Lanes<V, W> operator+(const Lanes<V, W>& a, const Lanes<V, W>& b) {
  Lanes<V, W> r;
  for (int i = 0; i < W; ++i) r.v[i] = a.v[i] + b.v[i];
  return r;
}
template <class Y, class V, int W>
ORR_INLINE Lanes<V, W> rounded(Lanes<V, W> a) {
  for (int i = 0; i < W; ++i) a.v[i] = rounded<Y>(a.v[i]);
  return a;
}

// How many vectors of columns are summed side by side.
inline constexpr int kStrip = 4;

// Computes the columns [at, at + W * 16) of y[nodes, columns]; with W = 1 only n columns.
// load(row, column, n) gives a vector of terms; a leaf has `length` rows.
template <class Y, int W, class Load, class N>
ORR_INLINE void column_nodes(const Leaves& leaves, int64_t length, int64_t columns, int64_t at,
                             Y* y, Load&& load, N n) {
  using V = Vec<Y>;
  each_node<Y, Lanes<V, W>>(
      leaves,
      [&](int64_t leaf) {
        Lanes<V, W> sum;
        column_sum<V, W>(
            leaf * length, (leaf + 1) * length,
            [&](int64_t r, int c) { return load(r, at + c * kLanes, n); }, sum.v);
        return sum;
      },
      [&](int64_t node, const Lanes<V, W>& x) {
        for (int c = 0; c < W; ++c) store(y + node * columns + at + c * kLanes, x.v[c], n);
      });
}

// Column sums of all columns, in parallel over strips of them.
template <class Y, class Load>
ORR_INLINE void column_sums(const Leaves& leaves, int64_t rows, int64_t columns, Y* y,
                            Load&& load) {
  const int64_t wide = kStrip * kLanes, length = rows / leaves.n;
  parallel(ceil_div(columns, wide), [&](int64_t strip) {
    int64_t first = strip * wide, last = smaller(columns, first + wide);
    if (last - first == wide)
      return column_nodes<Y, kStrip>(leaves, length, columns, first, y, load, Full{});
    each_vector(first, last, [&](int64_t at, auto n) {
      column_nodes<Y, 1>(leaves, length, columns, at, y, load, n);
    });
  });
}

}  // namespace orr_cpu::ORR_ISA
