// SPDX-License-Identifier: Apache-2.0
//
// The softmax, the norms and their gradients. Each tensor has a name of one character: d
// (dy), x and y are rows [R,C]; w and b are [C]; the statistics m (mean) and r (rstd) are [R]; n is
// a sum over the rows, [nodes,C] if the op has leaves.
#pragma once

#include <string_view>

#include "../device/row_args.h"
#include "row_launch.h"

namespace orr_cuda {

// What a norm adds to its input first: a row (0: none) and a tensor. The result goes to `sum`.
struct Residual {
  CUdeviceptr bias = 0, added = 0, sum = 0;
};

class RowOp : public Prepared {
 public:
  explicit RowOp(const orr_op& op);
  void launch(CUstream stream, const Buffers& b) override { launch(stream, b, {}); }
  // REQUIRES: there is no residual, or the op is a norm.
  void launch(CUstream stream, const Buffers& b, const Residual& residual);

 private:
  std::string_view in_, out_;  // names of the tensors
  RowLaunch rows_;
  double eps_;
};

}  // namespace orr_cuda
