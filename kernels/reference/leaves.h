// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch: one sum per leaf, added in the binary tree over the leaf index (ops.h,
// LEAVES). Nodes are stored and added in the output's dtype, so that a 16-bit node rounds.
#pragma once

#include <orrery/sdk/plugin.hpp>

#include "op.h"
#include "sums.h"

namespace reference {

// Bytes of scratch for one output of `count` elements: a partial sum for each level below the root.
inline uint64_t leaves_workspace(const orr_op& op, int64_t count, int32_t dtype) {
  int levels = std::bit_width(uint64_t(Leaves(op).n - 1));
  return uint64_t(levels) * uint64_t(count) * uint64_t(orr_dtype_bytes(dtype));
}

template <class T>
void add_to(T* to, const T* from, int64_t count) {
  constexpr int64_t kPiece = 4096;
  orr::parallel_for((count + kPiece - 1) / kPiece, [=](int64_t p) {
    for (int64_t i = p * kPiece; i < std::min(count, (p + 1) * kPiece); ++i)
      put(to[i], plus(get(to[i]), get(from[i])));
  });
}

// The node over the leaves [first, first + n) of this call, into `to`.
template <class T, class Leaf>
void leaf_node(int64_t first, int64_t n, T* to, int64_t count, T* scratch, Leaf& leaf) {
  if (n == 1) return leaf(first, to);
  int64_t left = left_child(n);
  leaf_node(first, left, to, count, scratch, leaf);
  leaf_node(first + left, n - left, scratch, count, scratch + count, leaf);
  add_to(to, scratch, count);
}

// Writes every node that the call completes to out[node * count ..]. leaf(i, to) computes the sum
// of the call's leaf i, `count` elements. `scratch` is what leaves_workspace asked for.
template <class T, class Leaf>
void sum_leaves(const orr_op& op, T* out, int64_t count, T* scratch, Leaf&& leaf) {
  Leaves leaves(op);
  int64_t at = leaves.lo;
  for (;;) {
    int64_t first = at - leaves.lo;
    int64_t n = orr_tree_node(&at, leaves.lo + leaves.n, leaves.total);
    if (n == 0) return;
    leaf_node(first, n, out, count, scratch, leaf);
    out += count;
  }
}

}  // namespace reference
