// SPDX-License-Identifier: Apache-2.0
//
// Sorts tokens by an index (device/scatter_sort.cu).
#pragma once

#include "../device/scatter.h"
#include "../function.h"
#include "../late.h"
#include "../op.h"

namespace orr_cuda {

class TokenSort {
 public:
  // Of indices into `rows`; `late` is the message of one outside (late.h). `skips`: -1 is none, and
  // no error. REQUIRES: the device is open.
  TokenSort(const orr_op& op, const std::string& late, const orr_tensor& index, int64_t rows,
            bool skips);

  // The kernel gives start and order, as in ScatterSortArgs; they lie in the workspace.
  struct Sorted {
    const int32_t *start, *order;
  };
  Sorted enqueue(CUstream stream, CUdeviceptr index, CUdeviceptr workspace) const;

  static uint64_t workspace(int64_t tokens, int64_t rows);

 private:
  LateSource late_;
  int64_t tokens_, rows_;
  bool wide_, skips_;
  Function steps_[5];
};

}  // namespace orr_cuda
