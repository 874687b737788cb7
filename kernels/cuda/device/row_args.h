// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fold.h"
#include "rows.h"

namespace orr_cuda {

// softmax: x -> y. Its gradient: dy, x, which is the softmax, -> y = dx. layernorm and rmsnorm: x,
// w, b -> y, mean, rstd; the gradients: dy, x, w, mean, rstd -> y = dx. rmsnorm has neither b nor
// mean. Statistics are accumulators. With `added` what is normalised is x + bias + added, or
// without bias x + added, and it is stored as `sum`; norm_grad adds it to dx.
struct RowTensors {
  const void *dy, *x, *w, *b, *bias, *added;
  void *y, *mean, *rstd, *sum;
};
struct RowArgs : RowTensors {
  Rows rows;
  double eps;
};

enum { kNormThreads = 128, kNormTile = kNormThreads / 8 };  // threads, and rows at most

// norm_grad: y = dx, or dx + added. A block makes one of `entries` entries of each sum over a
// segment of `length` rows: dw, db if there is a mean, and y if that is wanted.
struct NormGradArgs : RowTensors {
  FoldOutput sums;
  int64_t length, entries;
  int32_t columns, blocks;       // of row sums
  int32_t tile, pitch, rows_at;  // rows in shared memory, bytes from one to the next, the first
  bool packets, sums_y;          // packets: rows can be moved 16 bytes at a time
};

}  // namespace orr_cuda
