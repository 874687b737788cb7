// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fold.h"
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

// norm_grad: y = dx, or dx + added. A block works on ORR_SUM_ROWS rows of a segment, and adds up
// their dw, db and y behind its teams' shared memory: one of `entries` entries of each sum.
struct NormGradArgs : NormArgs {
  const void* added;
  FoldOutput
      sums;  // the arrays are dw, db if there is a mean, and the sums of y if they are wanted
  int64_t length, entries;
  bool sums_y;
};

}  // namespace orr_cuda
