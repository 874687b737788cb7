// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rows.h"

namespace orr_cuda {

// layernorm and rmsnorm: x, w, b -> y, mean, rstd; the gradients: dy, x, w, mean, rstd -> y = dx.
// rmsnorm has neither b nor mean. Statistics are accumulators.
struct NormArgs {
  Rows rows;
  const void *dy, *x, *w, *b;
  void *y, *mean, *rstd;
  double eps;
};

}  // namespace orr_cuda
