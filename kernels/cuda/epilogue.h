// SPDX-License-Identifier: Apache-2.0
//
// Finds in the expression of a matmul_pointwise what cuBLASLt can do with the product before it
// stores it. Some epilogues are exact, that is they round as the separate ops do: in f32 the
// addition of a row (the bias) or of a tensor (beta = 1). The others are only for fast products:
// all epilogues in 16 bits, because the separate ops would round the product first, and GELU,
// because the library computes it in its own way.
#pragma once

#include <cublasLt.h>

#include <optional>
#include <string>
#include <vector>

#include "matmul_layout.h"

namespace orr_cuda {

struct Epilogue {
  Epilogue() = default;                 // nothing follows
  explicit Epilogue(const orr_op& op);  // throws Unsupported

  // The two ops that the op stands for. The matmul writes output `result`; the rest may overwrite
  // it. Not to be copied.
  struct Apart {
    orr_op matmul, rest;
    std::vector<orr_tensor> in;  // of the rest
  };
  Apart take_apart(const orr_op& op) const;

  uint32_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  int result = 0;                          // the output that the product becomes
  int bias = -1, added = -1, before = -1;  // inputs: a row, a tensor, the argument of GELU's slope
  int kept = -1;                           // output: the argument of GELU
  std::optional<Matrix> added_at, aux_at;  // layouts of `added`, and of GELU's argument

  std::string name() const;  // "+bias", "+gelu"
};

}  // namespace orr_cuda
