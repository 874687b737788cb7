// SPDX-License-Identifier: Apache-2.0
//
// matmul: any strides, groups, and sums over leaves node by node.
#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

void check(const orr_op& op) {
  require_counts(op, 2, 1);
  require_real(op, {0, 1, 2});
  const orr_tensor &a = op.in[0], &b = op.in[1];
  require(a.rank == 3, "a has three dims");
  require_dims(b, {a.dims[0], a.dims[2], b.rank == 3 ? b.dims[2] : -1});
  if (!orr::attr(op, "leaf_n")) return require_dims(op.out[0], {a.dims[0], a.dims[1], b.dims[2]});
  require(a.dims[0] == 1, "leaves need one group");
  require_nodes(op, op.out[0], {a.dims[1], b.dims[2]}, a.dims[2]);
}

std::vector<Pass> passes(const orr_op& op) {
  const orr_tensor &a = op.in[0], &b = op.in[1];
  std::vector<Pass> all;
  for (const Node& node : nodes_of(op))
    all.push_back({matmul_cl,
                   typed(a.dtype),
                   "matmul",
                   a.dims[0] * a.dims[1] * b.dims[2],
                   {0, 1, 2},
                   {a.dims[1], b.dims[2], leaf_length(op, a.dims[2]), a.strides[0], a.strides[1],
                    a.strides[2], b.strides[0], b.strides[1], b.strides[2], node.first, node.count,
                    static_cast<int64_t>(all.size())}});
  return all;
}

}  // namespace

const Family matmul_family = {"matmul", check, passes, 3, 0};

}  // namespace ocl
