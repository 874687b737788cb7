// SPDX-License-Identifier: Apache-2.0
#include "leaf_tree.h"

#include <algorithm>
#include <bit>

namespace orr_cuda {
namespace {

// The node over the call's leaves [first, first + n) into `to`; levels from `level` are free.
void add_node(LeafTree& tree, int64_t first, int64_t n, int to, int level) {
  if (n == 1) return tree.steps.push_back({first, to, -1});
  const auto left = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)) / 2);
  const int beside = tree.nodes + level;
  tree.levels = std::max(tree.levels, level + 1);
  add_node(tree, first, left, to, level);
  add_node(tree, first + left, n - left, beside, level + 1);
  tree.steps.push_back({-1, to, beside});
}

}  // namespace

LeafTree::LeafTree(const Leaves& leaves) : nodes(static_cast<int>(leaves.nodes())), levels(0) {
  int64_t at = leaves.lo;
  for (int node = 0; node < nodes; ++node) {
    const int64_t first = at - leaves.lo;
    add_node(*this, first, orr_tree_node(&at, leaves.lo + leaves.n, leaves.total), node, 0);
  }
}

}  // namespace orr_cuda
