// SPDX-License-Identifier: Apache-2.0
//
// The op fold (ops.h): which windows reach which element of the result. Compiled once, in
// fold_plan.cpp.
#pragma once

#include "kernel.h"

namespace orr_cpu {

// x[lead, windows..., size..., width] -> y[lead, length..., width], of one to three windowed dims
// as three: those that are missing come first, with one index. An element of y at l0, l1, l2 is the
// sum of those of x, of the same lead and column, at every offset of l0 plus every one of l1 plus
// every one of l2, in that order.
struct FoldPlan {
  explicit FoldPlan(const orr_op& op);
  ~FoldPlan();
  FoldPlan(const FoldPlan&) = delete;
  FoldPlan& operator=(const FoldPlan&) = delete;

  int64_t lead, width;
  int64_t block;      // elements of x for one index of lead
  int64_t length[3];  // of y
  // Of index l along dim d: offset[d][first[d][l]] up to, not with, first[d][l + 1].
  int64_t *first[3], *offset[3];
};

void fold_supports(const orr_op& op, orr_support& out);

}  // namespace orr_cpu
