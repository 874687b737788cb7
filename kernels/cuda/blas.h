// SPDX-License-Identifier: Apache-2.0
//
// The library cuBLASLt, opened at its first use, and its objects. ORRERY_CUBLASLT_LIBRARY names
// another file than libcublasLt.so of CUDA 13 or 12.
#pragma once

#include <cublasLt.h>

#include <utility>

#include "library.h"

namespace orr_cuda {

// clang-format off
#define ORR_BLAS_FUNCTIONS(X)                                                                     \
  X(cublasLtCreate) X(cublasLtGetStatusString) X(cublasLtMatmul) X(cublasLtMatmulDescCreate)      \
  X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate)    \
  X(cublasLtMatrixLayoutDestroy) X(cublasLtMatrixLayoutSetAttribute)                              \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy)                            \
  X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic)                       \
  X(cublasLtMatmulAlgoConfigGetAttribute) X(cublasLtMatmulAlgoCheck) X(cublasLtGetVersion)
// clang-format on

struct Blas {
  // Throws orr::Error (ORR_UNAVAILABLE) with the reason and the remedy.
  Blas();
  Blas(const Blas&) = delete;

  ORR_BLAS_FUNCTIONS(ORR_MEMBER)

  cublasLtHandle_t handle = nullptr;  // of the process, for the open device
};

// Opens the library at the first call. REQUIRES: the device is current. [main thread]
const Blas& blas();

void check_blas(cublasStatus_t status, const char* what);

// An object that the library makes, and destroys.
template <class T>
class BlasObject {
 public:
  using Destroy = cublasStatus_t (*)(T);
  BlasObject(T object, Destroy destroy) : object_(object), destroy_(destroy) {}
  BlasObject(BlasObject&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  ~BlasObject() {
    if (object_) destroy_(object_);
  }
  T get() const { return object_; }

 private:
  T object_;
  Destroy destroy_;
};

}  // namespace orr_cuda
