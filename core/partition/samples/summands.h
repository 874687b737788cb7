// SPDX-License-Identifier: Apache-2.0
//
// Which summands of a sum over the batch a rank has. Such a sum is a tree whose leaves are the sums
// of its microbatches (orrery/ops.h, LEAVES). Of 8 microbatches on three ranks, rank 1 has the
// leaves 2, 3 and 4 of 8, in two nodes: that of 2 and 3, and that of 4.
#pragma once

#include <orrery/ops.h>

#include <string>
#include <vector>

#include "partition/localize.h"

namespace orrery {

// This rank has the leaves [lo, lo + n) of `total`; the other ranks of `axis` have the others ("":
// there are none). The ranks of the batch axis `gathered` all have these same leaves, because each
// of them has the samples of all; "": there is no such axis.
struct Summands {
  std::string axis, gathered;
  int64_t lo, n, total;
  int64_t nodes() const { return orr_tree_nodes(lo, lo + n, total); }
};

// Those of a sum that the ranks of `axis` complete. `first_microbatch` is by rank of the batch
// axis.
Summands summands_over(const std::string& axis, const std::string& gathered, const Mesh& mesh,
                       const Microbatches& microbatches,
                       const std::vector<int64_t>& first_microbatch, int rank);

}  // namespace orrery
