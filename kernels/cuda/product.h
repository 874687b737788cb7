// SPDX-License-Identifier: Apache-2.0
//
// A call of cuBLASLt: a matrix product of fixed shape, with the algorithm that is chosen for it.
//
// Bits must not depend on the number of rows, columns or groups of a call. So the algorithm does
// not depend on it either: it is the library's first choice for a nominal product with this K and
// this alignment of strides, without splitting K. If K is the batch (weight gradients), there are
// few rows and a long K: then it is the first choice for this shape, and K may be split, with the
// parts added in f32 in their order.
//
// None of this holds for a fast product (orrery/ops.h): of the library's choices for this shape,
// the one that is measured to be the fastest is used, however it splits K, and f32 factors are
// TF32.
#pragma once

#include <cuda.h>

#include <vector>

#include "blas.h"
#include "epilogue.h"

namespace orr_cuda {

constexpr int64_t nominal_rows = 8192, nominal_cols = 4096;

// The bytes of scratch that a call may use: more if K may be split, for the parts.
size_t blas_workspace(const MatmulShape& shape);

class Product {
 public:
  // The product sums `depth` elements, which may be fewer than K. Addresses fit `alignment`. Throws
  // orr::Error if the library has no algorithm.
  Product(const MatmulShape& shape, int64_t depth, const Alignment& alignment,
          const Epilogue* epilogue = nullptr);

  // With an epilogue: whether the library has an algorithm that may be used. Unless the product is
  // fast, it must be that of the product without epilogue.
  bool usable() const { return usable_; }

  void launch(CUstream stream, CUdeviceptr a, CUdeviceptr b, CUdeviceptr y, CUdeviceptr workspace,
              const EpilogueAddresses& beside = {}) const;

 private:
  struct Layouts {
    BlasObject<cublasLtMatrixLayout_t> a, b, y;
    BlasObject<cublasLtMatrixLayout_t> c;  // the layout of y, or of the tensor that is added
  };
  static Layouts layouts(const MatmulShape& shape, int64_t depth, bool nominal,
                         const Epilogue* epilogue);
  void choose(const MatmulShape& shape, int64_t depth, const Alignment& alignment,
              const Epilogue* epilogue);
  std::vector<cublasLtMatmulAlgo_t> candidates(const MatmulShape& shape, int64_t depth,
                                               const Alignment& alignment,
                                               const Epilogue* epilogue) const;
  bool takes(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulDesc_t product,
             cublasLtMatrixLayout_t c) const;
  void launch(CUstream stream, const cublasLtMatmulAlgo_t& algorithm, CUdeviceptr a, CUdeviceptr b,
              CUdeviceptr y, CUdeviceptr workspace, const EpilogueAddresses& beside) const;

  bool f64_, has_bias_, has_aux_, adds_, usable_ = true;
  size_t workspace_;
  BlasObject<cublasLtMatmulDesc_t> product_;
  Layouts layouts_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace orr_cuda
