// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rows.h"

namespace orr_cuda {

// argmax: x -> index. topk: x -> value, index, k of each row.
struct BestArgs {
  Rows rows;
  const void* x;
  void* value;
  int64_t* index;
  int64_t step;  // of x, from row to row, in elements
  int32_t k;
};

struct CategoricalArgs {
  Rows rows;
  const void* logits;
  const int64_t *seed, *step, *base;
  int64_t* y;
  uint32_t rng_id;
};

enum { kCategoricalThreads = 256 };

}  // namespace orr_cuda
