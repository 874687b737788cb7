// SPDX-License-Identifier: Apache-2.0
//
// pointwise_sum (orrery/sdk/joined.hpp): x... -> s[O,I], the sums over K of an expression of
// [O,K,I], of which no element is stored.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include "pointwise.h"

namespace orr_cpu {

// The sums, seen as rows of terms: `outer` * `leaves` parts of `length` rows each, in blocks of
// ORR_SUM_ROWS rows. Of several dims behind those that are added up only the last one is a row's
// columns: the others are moved before the rows, where each has sums of its own, since operands are
// longer neighbours in memory then (slopes that repeat for each tap of a window, for example).
struct PointwiseSumPlan {
  explicit PointwiseSumPlan(const orr_op& op);
  int64_t outer, columns, leaves, length, blocks;
  int64_t node;  // from one node to the next in the result
  int32_t order[ORR_MAX_RANK];
  orr_tensor terms;  // contiguous, its dims in that order

  int64_t block_count() const { return outer * leaves * blocks; }
  orr_tensor ordered(const orr_tensor& t) const;
};

// The expression alone, its tensors in the order of the plan. Stays where it is, and borrows.
// REQUIRES: op.n_in <= pointwise::kMaxTensors.
struct PointwiseTerms {
  PointwiseTerms(const orr_op& op, const PointwiseSumPlan& plan);
  PointwiseTerms(const PointwiseTerms&) = delete;
  orr_op op;
  orr_tensor in[pointwise::kMaxTensors];
};

void pointwise_sum_supports(const orr_op& op, orr_support& out);
uint64_t pointwise_sum_workspace(const orr_op& op);

}  // namespace orr_cpu
