// SPDX-License-Identifier: Apache-2.0
//
// One call of cuBLASLt: a matrix product of fixed shape with the algorithm chosen for it.
//
// Bits may not depend on how many rows a call has, nor on how many columns or groups: the algorithm
// is the library's first choice for one nominal product of this K and these strides' alignment,
// with K unsplit, and serves every number of them. Where K is the batch (weight gradients) few rows
// meet a long K: there it is the first choice for the very shape, and K may be split, with the
// parts added in f32 in their order.
//
// A fast product (orrery/ops.h) is bound by none of this: of the library's choices for the very
// shape the one that is the fastest here serves, whatever it does to K, and f32 factors are TF32.
#pragma once

#include <cuda.h>

#include <vector>

#include "blas.h"
#include "epilogue.h"

namespace orr_cuda {

constexpr int64_t nominal_rows = 8192, nominal_cols = 4096;

// Bytes of scratch that every call may use: parts of a split K where that may be, else a little.
size_t blas_workspace(const MatmulShape& shape);

class Product {
 public:
  // `depth` of K's elements; addresses are multiples of `alignment`. Throws orr::Error where the
  // library has no algorithm.
  Product(const MatmulShape& shape, int64_t depth, int64_t alignment,
          const Epilogue* epilogue = nullptr);

  // With an epilogue: whether the library has one that may serve. It is the product's own unless
  // the product is fast.
  bool usable() const { return usable_; }

  void launch(CUstream stream, CUdeviceptr a, CUdeviceptr b, CUdeviceptr y, CUdeviceptr workspace,
              const EpilogueAddresses& beside = {}) const;

 private:
  struct Layouts {
    BlasObject<cublasLtMatrixLayout_t> a, b, y;
    BlasObject<cublasLtMatrixLayout_t> c;  // y's, or that of what is added
  };
  static Layouts layouts(const MatmulShape& shape, int64_t depth, bool nominal,
                         const Epilogue* epilogue);
  void choose(const MatmulShape& shape, int64_t depth, int64_t alignment, const Epilogue* epilogue);
  std::vector<cublasLtMatmulAlgo_t> candidates(const MatmulShape& shape, int64_t depth,
                                               int64_t alignment, const Epilogue* epilogue) const;
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
