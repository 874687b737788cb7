// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fold.h"
#include "rows.h"

namespace orr_cuda {

// softmax: x -> y. Its gradient: dy, x, which is the softmax, -> y = dx. layernorm and rmsnorm: x,
// w, b -> y, mean, rstd; the gradients: dy, x, w, mean, rstd -> y = dx. rmsnorm has neither b nor
// mean. Statistics are accumulators. With `added` what is normalised is x + bias + added, or
// without bias x + added, and it is stored as `sum`; norm_grad adds it to dx.
struct RowArgs {
  Rows rows;
  const void *dy, *x, *w, *b, *bias, *added;
  void *y, *mean, *rstd, *sum;
  double eps;
};

// norm_grad: y = dx, or dx + added. A block works on ORR_SUM_ROWS rows of a segment, and adds up
// their dw, db and y behind its teams' shared memory: one of `entries` entries of each sum.
struct NormGradArgs : RowArgs {
  // The arrays are dw, db if there is a mean, and the sums of y if they are wanted.
  FoldOutput sums;
  int64_t length, entries;
  bool sums_y;
};

}  // namespace orr_cuda
