// SPDX-License-Identifier: Apache-2.0
//
// The host's side of device/fold.h. After the first stage there are [segments, entries, columns]
// partial results; the later stages fold them to one entry, and the leaves to their nodes.
#pragma once

#include "../device/fold.h"
#include "../function.h"
#include "../op.h"

namespace orr_cuda {

// "f32", "u8", as in the names of device functions for dtypes of numbers; BOOL is one byte like U8.
inline const char* number_name(int32_t dtype) {
  return dtype_name(dtype == ORR_BOOL ? ORR_U8 : dtype);
}

// The dtype of the accumulators for values of this dtype.
inline int32_t accumulator(int32_t dtype) {
  return is_real(dtype) ? wide_dtype(dtype) : int32_t{ORR_I64};
}

// The blocks of so many threads.
inline Extent blocks_of(int64_t threads) { return {unsigned(divide_up(threads, kFoldThreads))}; }

// The bytes of an accumulator in the workspace, whatever its type.
constexpr int64_t kAccumulator = 8;

// The shapes of the stages; pure.
struct FoldPlan {
  // For `arrays` sums over x[outer, length, columns], cut into leaves. Each entry of the first
  // stage is a sum over `block` rows.
  FoldPlan(const orr_op& op, int64_t outer, int64_t length, int64_t columns, int arrays,
           int64_t block);

  bool direct() const { return entries == 1 && leaves.n == 1; }
  uint64_t workspace() const;
  // Of a later stage: how many of n entries a thread folds, and how many are left after it.
  int32_t run(int64_t n) const;
  int64_t after(int64_t n) const;

  Leaves leaves;
  int64_t segments, length, columns, entries;
  int arrays;

 private:
  int64_t rows_of_threads() const { return columns == 1 ? kFoldThreads : kFoldRows; }
};

struct FoldLaunch {
  // `dtype` is that of the elements; the output is rounded to it, or keeps accumulators. REQUIRES:
  // the device is open.
  FoldLaunch(const FoldPlan& plan, int32_t dtype, int32_t fn, bool rounded);

  // Where the first stage must write.
  FoldOutput first(const Buffers& b) const;
  // Enqueues the later stages, which read what the first has written, and write b.out.
  void rest(CUstream stream, const Buffers& b) const;

 private:
  FoldOutput outputs(const Buffers& b) const;
  FoldOutput work(void* at, int64_t n) const;

  FoldPlan plan_;
  int32_t fn_;
  bool rounded_;
  Function fold_, tree_;
  LeafTreeArgs nodes_{};
};

// The nodes that the leaves of this call complete.
int fill_nodes(const Leaves& leaves, LeafNode* nodes);

}  // namespace orr_cuda
