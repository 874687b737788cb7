// SPDX-License-Identifier: Apache-2.0
//
// The check of an output of an op with leaves.
#pragma once

#include "../op.h"

namespace orr_cuda {

// Throws Unsupported unless `t` ends in `dims`, and the dims before them multiply to the number of
// nodes, or to 1 if the op is declared as without leaves.
inline void require_nodes(const orr_op& op, const orr_tensor& t,
                          std::initializer_list<int64_t> dims, const char* name) {
  require(Leaves(op).total < int64_t{1} << 30, "2^30 leaves, or more");  // kMaxNodes nodes at most
  int at = t.rank - int(dims.size());
  bool ok = at >= 0;
  int64_t lead = 1;
  for (int i = 0; i < at; ++i) lead *= t.dims[i];
  for (int64_t d : dims) ok = ok && t.dims[at++] == d;
  ok = ok && (lead == 1 || lead == Leaves(op).nodes());
  require(ok, std::string("the shape of ") + name + " is not [nodes, ..] of the other tensors");
}

}  // namespace orr_cuda
