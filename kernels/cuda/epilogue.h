// SPDX-License-Identifier: Apache-2.0
//
// What cuBLASLt can do with a product before it stores it, read from the expression of a
// matmul_pointwise. Exact are those that round as the separate ops do: in f32 one addition, of a
// row (the bias) or of a tensor (beta = 1). The others are for fast products: all of them in 16
// bits, whose sum would be rounded once more between, and GELU, which is the library's own.
#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include <optional>
#include <string>
#include <vector>

#include "matmul_layout.h"

namespace orr_cuda {

struct Epilogue {
  explicit Epilogue(const orr_op& op);  // throws Unsupported

  // The two ops that it stands for: the matmul writes output `result`, over which the rest may
  // write.
  struct Apart {
    orr_op matmul, rest;
    std::vector<orr_tensor> in;  // of the rest
  };
  void take_apart(const orr_op& op, Apart& to) const;

  cublasLtEpilogue_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  int result = 0;                          // output that the product becomes
  int bias = -1, added = -1, before = -1;  // inputs: a row, a tensor, what GELU's slope is taken at
  int kept = -1;                           // output: what GELU was applied to
  std::optional<Matrix> added_at, aux_at;  // where the tensor, and what GELU keeps or needs, lie

  std::string name() const;  // "+bias", "+gelu"
};

// The addresses of one launch.
struct EpilogueAddresses {
  CUdeviceptr bias = 0, added = 0, aux = 0;
};

}  // namespace orr_cuda
