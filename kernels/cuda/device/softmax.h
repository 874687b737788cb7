// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rows.h"

namespace orr_cuda {

// softmax: x -> y. softmax_grad: x is dy, other is y, y is dx.
struct SoftmaxArgs {
  Rows rows;
  const void* x;
  const void* other;
  void* y;
};

}  // namespace orr_cuda
