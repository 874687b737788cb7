// SPDX-License-Identifier: Apache-2.0
//
// Factors of eight bits as cuBLASLt reads them: their K lies along rows, which begin at multiples
// of 16 bytes. A factor that does not lie so is copied into the workspace.
#pragma once

#include <memory>

#include "matmul_layout.h"
#include "op.h"

namespace orr_cuda {

class RowsOfK {
 public:
  // The bytes of both copies; 0 of other dtypes. A factor that a plan puts at an odd address is
  // copied as well.
  static uint64_t bytes(const MatmulShape& shape);

  // REQUIRES: factors of eight bits; the device is open.
  RowsOfK(const orr_op& op, const MatmulShape& shape);
  // Where the product reads; enqueues the copies that it needs, which are made at `copies`.
  ProductPlaces before(CUstream stream, ProductPlaces at, CUdeviceptr copies) const;

 private:
  bool copies_a_, copies_b_;
  uint64_t b_at_;
  std::unique_ptr<Prepared> a_, b_;
};

}  // namespace orr_cuda
