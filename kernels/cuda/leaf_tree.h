// SPDX-License-Identifier: Apache-2.0
//
// The order in which leaves are added to tree nodes (ops.h, LEAVES), as a list. Places are
// numbered: first the nodes of the output, then the levels of the scratch.
#pragma once

#include <vector>

#include "op.h"

namespace orr_cuda {

struct LeafStep {
  int64_t leaf;  // this leaf is computed into `to`; -1: `from` is added to `to`
  int to, from;  // places: node i is i, scratch level l is nodes + l
};

struct LeafTree {
  explicit LeafTree(const Leaves& leaves);
  std::vector<LeafStep> steps;
  int nodes, levels;
};

}  // namespace orr_cuda
