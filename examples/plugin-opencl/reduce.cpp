// SPDX-License-Identifier: Apache-2.0
//
// reduce: sums over leaves, sums of squares, the largest and the smallest.
#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

void check(const orr_op& op) {
  require_counts(op, 1, 1);
  require_real(op, {0, 1});
  const orr_tensor& x = op.in[0];
  const std::string_view fn = orr::attr_text(op, "fn", "");
  require(fn == "sum" || fn == "sumsq" || fn == "max" || fn == "min",
          "fn must be sum, sumsq, max or min");
  require(x.rank == 3, "x has three dims");
  require(fn == "sum" || fn == "sumsq" || x.dims[1] > 0,
          "nothing has no largest or smallest element");
  if (!orr::attr(op, "leaf_n")) return require_dims(op.out[0], {x.dims[0], x.dims[2]});
  require(fn == "sum" && x.dims[0] == 1, "leaves need a sum with O = 1");
  require_nodes(op, op.out[0], {x.dims[2]}, x.dims[1]);
}

std::vector<Pass> passes(const orr_op& op) {
  const orr_tensor& x = op.in[0];
  const std::string_view fn = orr::attr_text(op, "fn", "");
  const int64_t items = x.dims[0] * x.dims[2];
  const std::string options = typed(x.dtype) + (fn == "sumsq" ? " -DSQUARES" : "");
  if (fn == "max" || fn == "min")
    return {{reduce_cl, options, "extreme", items, {0, 1}, {x.dims[2], x.dims[1], fn == "max"}}};
  std::vector<Pass> all;
  for (const Node& node : nodes_of(op))
    all.push_back({reduce_cl,
                   options,
                   "sum",
                   items,
                   {0, 1},
                   {x.dims[2], x.dims[1] * x.dims[2], leaf_length(op, x.dims[1]), node.first,
                    node.count, static_cast<int64_t>(all.size()), items}});
  return all;
}

}  // namespace

const Family reduce_family = {"reduce", check, passes};

}  // namespace ocl
