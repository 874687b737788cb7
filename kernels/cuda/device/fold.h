// SPDX-License-Identifier: Apache-2.0
//
// The data that the stages of a sum pass on. An array of partial results is [segments, entries,
// columns] of accumulators. A later stage adds `run` entries in each thread, and then those of the
// block's rows of threads, in the binary tree of ops.h; segments are leaves or outer rows. A launch
// works on up to kFoldArrays arrays of the same shape; blockIdx.y is the array.
#pragma once

#include <stdint.h>

namespace orr_cuda {

enum { kFoldColumns = 8, kFoldRows = 32, kFoldThreads = kFoldColumns * kFoldRows };
enum { kFoldArrays = 3 };
enum { kFoldLongest = 1024 };  // the longest run; a power of two, like all runs
enum { kFoldSum, kFoldSumOfSquares, kFoldMax, kFoldMin };

struct FoldArrays {
  void* array[kFoldArrays];
};
// A result: accumulators, or rounded to elements.
struct FoldOutput : FoldArrays {
  bool rounded;
};

struct FoldArgs {
  FoldArrays in;
  FoldOutput out;
  int64_t segments, entries, columns;
  int32_t run;  // 8 or more
  int32_t fn;
};

// Nodes of the tree over leaves: each has `count` leaves of this call, from `first` on.
enum { kMaxNodes = 64 };
struct LeafNode {
  int32_t first, count;
};

// Adds [leaves, columns] of accumulators, which are overwritten, to [nodes, columns].
struct LeafTreeArgs {
  FoldArrays in;
  FoldOutput out;
  int64_t columns;
  int32_t nodes;
  LeafNode node[kMaxNodes];
};

// The first stage of a reduce of rows: makes of the elements x[segments, length] one entry for each
// block of ORR_SUM_BLOCK elements.
struct ReduceArgs {
  const void* x;
  FoldOutput out;
  int64_t segments, length, entries;
  int32_t fn;
};

// reduce_each: one launch makes the entries of the blocks of all tensors, a second one folds those
// of each. `first`: the number of a tensor's first entry.
enum { kEachTensors = 120 };
struct EachTensor {
  const void* x;
  void* y;
  int64_t length;
  int32_t first, entries;
};
struct ReduceEachArgs {
  EachTensor tensor[kEachTensors];
  void* work;
  int32_t tensors, entries, fn;
};

}  // namespace orr_cuda
