// SPDX-License-Identifier: Apache-2.0
//
// See pointwise_sum_plan.h.
#include "pointwise_sum_plan.h"

#include <orrery/sdk/plugin.hpp>

#include <algorithm>

namespace orr_cpu {
namespace {

constexpr int64_t kLeastColumns = 32;

// Random numbers go by the places of elements.
bool may_move(const orr_op& op) {
  for (int32_t i = 0; i < op.expr->n_instrs; ++i)
    if (op.expr->instrs[i].fn == ORR_FN_RAND) return false;
  return op.in[0].dims[op.in[0].rank - 1] >= kLeastColumns;
}

}  // namespace

PointwiseSumPlan::PointwiseSumPlan(const orr_op& op)
    : outer(attr_int(op, "outer", 1)),
      columns(attr_int(op, "columns", 1)),
      leaves(attr_int(op, "leaf_n", 1)),
      node(outer * columns) {
  const int32_t rank = op.in[0].rank, begin = int32_t(attr_int(op, "begin", 0));
  const int32_t end = int32_t(attr_int(op, "end", 0));
  const int32_t moved = end + 1 < rank && may_move(op) ? rank - 1 - end : 0;
  for (int32_t i = 0; i < rank; ++i) order[i] = i;
  std::rotate(order + begin, order + end, order + end + moved);
  for (int32_t d = end; d < end + moved; ++d) {
    outer *= op.in[0].dims[d];
    columns /= op.in[0].dims[d];
  }
  terms = ordered(op.in[0]);
  terms.dtype = ORR_F32;
  int64_t count = 1;
  for (int32_t d = rank; d-- > 0; count *= terms.dims[d]) terms.strides[d] = count;
  length = count / std::max<int64_t>(1, outer * columns * leaves);
  blocks = (length + ORR_SUM_ROWS - 1) / ORR_SUM_ROWS;
}

orr_tensor PointwiseSumPlan::ordered(const orr_tensor& t) const {
  orr_tensor moved = t;
  for (int32_t i = 0; i < t.rank; ++i)
    moved.dims[i] = t.dims[order[i]], moved.strides[i] = t.strides[order[i]];
  return moved;
}

PointwiseTerms::PointwiseTerms(const orr_op& sum, const PointwiseSumPlan& plan) : op(sum) {
  for (int32_t i = 0; i < sum.n_in; ++i) in[i] = plan.ordered(sum.in[i]);
  op.kind = "pointwise", op.in = in, op.out = &plan.terms;
}

void pointwise_sum_supports(const orr_op& op, orr_support& out) {
  if (op.n_in > pointwise::kMaxTensors) return refuse(out, "too many inputs");
  if (op.n_in == 0 || orr::elements(op.in[0]) == 0) return refuse(out, "nothing to add up");
  if (op.expr->instrs[op.expr->outputs[0]].dtype != ORR_F32 || op.out[0].dtype != ORR_F32)
    return refuse(out, "only terms and sums of f32");
  const PointwiseSumPlan plan(op);
  pointwise::supports(PointwiseTerms(op, plan).op, out);
  if (out.score <= 0) return;
  accept(out, "pointwise_sum/lanes16/1");
  out.inplace = 0, out.strided_out = 0;
}

uint64_t pointwise_sum_workspace(const orr_op& op) {
  const PointwiseSumPlan plan(op);
  return uint64_t(plan.block_count() * plan.columns) * sizeof(float) + 64;
}

}  // namespace orr_cpu
