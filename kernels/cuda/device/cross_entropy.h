// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../late_word.h"
#include "rows.h"

namespace orr_cuda {

// cross_entropy: logits, labels, w (, dloss) -> loss, lse (, dlogits). cross_entropy_grad: dloss,
// logits, labels, w, lse -> dlogits. All but logits, labels and dlogits are accumulators.
struct CrossEntropyArgs {
  Rows rows;
  const void *logits, *labels, *w, *dloss;
  void *loss, *lse, *dlogits;  // null: not wanted
  int64_t step, step_out;      // from a row of logits, or of dlogits, to the next, in elements
  LateArgs late;
  bool wide_labels;  // i64
};

}  // namespace orr_cuda
