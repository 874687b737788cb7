// SPDX-License-Identifier: Apache-2.0
//
// scatter_add sorts tokens by row: it counts them, finds where each row's tokens begin, puts the
// tokens of a row there in any order, and then in ascending order. It adds them in that order.
#pragma once

#include <stdint.h>

#include "fold.h"
#include "index.h"

namespace orr_cuda {

enum { kScanThreads = 1024, kScatterWarps = 8 };

struct ScatterSortArgs {
  const void* index;
  bool wide_index;
  int64_t tokens, rows;
  int32_t* start;   // [rows + 1]: counts, then where each row's tokens begin
  int32_t* cursor;  // [rows]
  int32_t* loose;   // [tokens]: by row, in any order
  int32_t* order;   // [tokens]: by row, ascending
  LateArgs late;
  bool skips;  // tokens of row -1, which are no error
};

// y[nodes, rows, columns]; base may be y or null. A row without tokens is that of base, or 0.
struct ScatterArgs {
  const int32_t *start, *order;
  const void *dy, *base;
  void* y;
  int64_t rows, columns, leaf_tokens;
  int32_t nodes;
  LeafNode node[kMaxNodes];
};

}  // namespace orr_cuda
