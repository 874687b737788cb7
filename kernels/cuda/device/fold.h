// SPDX-License-Identifier: Apache-2.0
//
// Sums in stages: what the stages hand on. An array of partial results is [segments, entries,
// columns] of accumulators; entries are added in the binary tree of ops.h, 64 at a time; segments
// are leaves or outer rows. Up to two arrays of one shape go together, blockIdx.y says which.
#pragma once

#include <stdint.h>

namespace orr_cuda {

enum { kFoldColumns = 32, kFoldRows = 8, kFoldThreads = kFoldColumns * kFoldRows };
enum { kFoldSum, kFoldSumOfSquares, kFoldMax, kFoldMin };

// A result: accumulators, or rounded to elements.
struct FoldOutput {
  void* array[2];
  bool rounded;
};

struct FoldArgs {
  const void* in[2];
  FoldOutput out;
  int64_t segments, entries, columns;
  int32_t fn;
};

// Nodes of the tree over leaves: each is `count` leaves from `first` on, of this call.
enum { kMaxNodes = 64 };
struct LeafNode {
  int32_t first, count;
};

// [leaves, columns] of accumulators, which are spoilt, to [nodes, columns].
struct LeafTreeArgs {
  void* in[2];
  FoldOutput out;
  int64_t columns;
  int32_t nodes;
  LeafNode node[kMaxNodes];
};

// First stage of reduce: x[segments, length, columns] of elements to one entry for each block of
// ORR_SUM_BLOCK elements (columns = 1) or for each eight blocks of ORR_SUM_ROWS rows.
struct ReduceArgs {
  const void* x;
  FoldOutput out;
  int64_t segments, length, columns, entries;
  int32_t fn;
};

// First stage of norm_param_grad: array 0 is dw, array 1 db; without mean (rms) there is no db.
struct NormParamArgs {
  const void *dy, *x, *mean, *rstd;
  FoldOutput out;
  int64_t segments, length, columns, entries;
};

}  // namespace orr_cuda
