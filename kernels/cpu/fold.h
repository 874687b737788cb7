// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a fold op (ops.h). Compiled once, in fold_plan.cpp.
#pragma once

#include "kernel.h"

namespace orr_cpu {

// One to three windowed dims as three: those that are missing come first, with one window of one
// element. x[lead, count..., size..., width] -> y[lead, length..., width].
struct FoldGeometry {
  explicit FoldGeometry(const orr_op& op);
  int64_t lead, width;
  int64_t count[3] = {1, 1, 1}, size[3] = {1, 1, 1}, length[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
};

void fold_supports(const orr_op& op, orr_support& out);

}  // namespace orr_cpu
