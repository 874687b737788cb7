// SPDX-License-Identifier: Apache-2.0
//
// The host's side of device/fold.h: after a first stage has left [segments, entries, columns]
// partial results, folds them to one entry and the leaves to their nodes.
#pragma once

#include <vector>

#include "../device/fold.h"
#include "../function.h"
#include "../op.h"
#include "pointer.h"

namespace orr_cuda {

// "f32", "u8": of the device functions for a dtype that holds numbers; BOOL is one byte like U8.
inline const char* number_name(int32_t dtype) {
  return dtype_name(dtype == ORR_BOOL ? ORR_U8 : dtype);
}

// Blocks for `threads` threads of kFoldThreads.
inline Extent fold_grid(int64_t threads) {
  return {unsigned((threads + kFoldThreads - 1) / kFoldThreads)};
}

// Rows that one block of threads folds.
constexpr int64_t kColumnBlock = int64_t{ORR_SUM_ROWS} * kFoldRows;

// Shapes alone; pure.
struct FoldPlan {
  // Of `arrays` sums over x[outer, length, columns], cut into leaves; each entry of the first stage
  // is one over `block` rows.
  FoldPlan(const orr_op& op, int64_t outer, int64_t length, int64_t columns, int arrays,
           int64_t block);

  bool direct() const { return entries == 1 && leaves.n == 1; }
  uint64_t workspace() const;
  Extent column_grid(int64_t groups) const;

  Leaves leaves;
  int64_t segments, length, columns, entries;
  int arrays;
};

struct FoldLaunch {
  // `dtype` is that of the elements; the output is rounded to it, or keeps accumulators. REQUIRES:
  // the device is open.
  FoldLaunch(const FoldPlan& plan, int32_t dtype, int32_t fn, bool rounded);

  // Where the first stage writes.
  FoldOutput first(const Buffers& b) const;
  // Enqueues the later stages, from what `first` said to b.out.
  void rest(CUstream stream, const Buffers& b) const;

 private:
  FoldOutput outputs(const Buffers& b) const;

  FoldPlan plan_;
  int32_t fn_;
  bool rounded_;
  Function fold_, tree_;
  LeafTreeArgs nodes_{};
};

// The nodes that the leaves of this call complete.
int fill_nodes(const Leaves& leaves, LeafNode* nodes);

}  // namespace orr_cuda
