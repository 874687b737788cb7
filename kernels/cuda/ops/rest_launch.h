// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../device/rest.h"
#include "../function.h"
#include "../matmul_layout.h"

namespace orr_cuda {

// A small part of a product, by device/rest.cu.
class RestLaunch {
 public:
  // Sums `depth` elements, which may be fewer than K. REQUIRES: 16-bit elements, one group; the
  // device is open.
  RestLaunch(const MatmulShape& shape, int64_t depth);
  void launch(CUstream stream, CUdeviceptr a, CUdeviceptr b, CUdeviceptr y) const;

 private:
  Function function_;
  RestArgs args_;
  Extent grid_;
};

}  // namespace orr_cuda
