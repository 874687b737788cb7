// SPDX-License-Identifier: Apache-2.0
//
// layernorm, rmsnorm and their input gradients.
#pragma once

#include "row_launch.h"

namespace orr_cuda {

// Throws Unsupported unless the op is a norm_param_grad as in ops.h.
void require_norm_params(const orr_op& op);

// What a norm adds to its input first: a row (0: none) and a tensor. The result goes to `sum`.
struct Residual {
  CUdeviceptr bias = 0, added = 0, sum = 0;
};

class Norm : public Prepared {
 public:
  explicit Norm(const orr_op& op);
  void launch(CUstream stream, const Buffers& b) override { launch(stream, b, {}); }
  // Forward only, if there is a residual.
  void launch(CUstream stream, const Buffers& b, const Residual& residual);

 private:
  bool rms_, grad_;
  RowLaunch rows_;
  double eps_;
};

}  // namespace orr_cuda
