// SPDX-License-Identifier: Apache-2.0
//
// A call of cuBLASLt: a matrix product of fixed shape, with the algorithm that is chosen for it.
//
// Bits must not depend on the number of rows, columns or groups of a call. So they are those of an
// algorithm that does not depend on it either: the library's first choice for a nominal product
// with this K and this alignment of strides, without splitting K. If K is the batch (weight
// gradients), there are few rows and a long K: then they are those of the first choice for this
// shape, and K may be split, with the parts added in f32 in their order. So they are, too, if the
// library does not take the nominal product's algorithm for this shape; that is logged.
//
// Of the library's choices for the nominal product and for this shape, those that are measured to
// have the same bits are raced, and the fastest one is used.
//
// None of this holds for a fast product (orrery/ops.h): of the library's choices for this shape,
// the one that is measured to be the fastest is used, however it splits K, and f32 factors are
// TF32.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "blas.h"
#include "epilogue.h"

namespace orr_cuda {

constexpr int64_t nominal_rows = 8192, nominal_cols = 4096;

// The bytes of scratch that a call may use: more if K may be split, for the parts.
size_t blas_workspace(const MatmulShape& shape);

class Product {
 public:
  // Addresses fit `alignment`. Without a race, which takes time, the algorithm whose bits count is
  // used itself. Throws orr::Error if the library has no algorithm.
  Product(const MatmulShape& shape, const Alignment& alignment, bool raced,
          const Epilogue& epilogue = {});

  // With an epilogue: whether the library has an algorithm that may be used. Unless the product is
  // fast, it must be that of the product without epilogue.
  bool usable() const { return usable_; }

  void launch(CUstream stream, const ProductPlaces& at) const { launch(stream, at, algorithm_); }

 private:
  // How the library is told what to compute.
  struct Call {
    Call(const MatmulShape& shape, const Epilogue& epilogue);
    Description product;
    Layout a, b, y;
    Layout c;  // the layout of y, or of the tensor that is added
  };
  using Algorithms = std::vector<cublasLtMatmulAlgo_t>;
  void choose(bool raced);
  std::string remedy() const;
  // The library's choices for a shape, the best first.
  Algorithms choices(const MatmulShape& shape, const Epilogue& epilogue) const;
  // The one whose bits count, then others that might have them.
  Algorithms candidates(const Epilogue& epilogue) const;
  cublasLtMatmulAlgo_t fastest(const Algorithms& candidates);
  bool takes(const cublasLtMatmulAlgo_t& algorithm, const Call& call) const;
  void launch(CUstream stream, const ProductPlaces& at,
              const cublasLtMatmulAlgo_t& algorithm) const;

  MatmulShape shape_;
  Alignment alignment_;
  Epilogue epilogue_;
  size_t workspace_;
  Call call_;
  bool usable_ = true;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace orr_cuda
