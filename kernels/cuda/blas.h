// SPDX-License-Identifier: Apache-2.0
//
// The library cuBLASLt, opened at its first use, and its objects. ORRERY_CUBLASLT_LIBRARY names
// another file than libcublasLt.so of CUDA 13 or 12.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <type_traits>

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
  Blas() {
    void* library =
        open_library("ORRERY_CUBLASLT_LIBRARY", {"libcublasLt.so.13", "libcublasLt.so.12"},
                     "libcublasLt.so.13 was not found: install cuBLAS, or name it with "
                     "ORRERY_CUBLASLT_LIBRARY");
    ORR_BLAS_FUNCTIONS(ORR_NEED)
    if (cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS)
      throw orr::Error(ORR_UNAVAILABLE, "cuBLASLt cannot work with this driver: update the driver");
  }
  Blas(const Blas&) = delete;

  ORR_BLAS_FUNCTIONS(ORR_MEMBER)

  cublasLtHandle_t handle = nullptr;  // of the process, for the open device
};

// Opens the library at the first call. REQUIRES: the device is current. [main thread]
inline const Blas& blas() {
  static const Blas opened;
  return opened;
}

inline void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw orr::Error(ORR_FAILED, std::string(what) + ": " + blas().cublasLtGetStatusString(status));
}
// Calls a function of the library, with this check.
#define ORR_BLAS(name, ...) check_blas(blas().name(__VA_ARGS__), #name)

// Objects that the library makes, and destroys.
template <class T>
using BlasObject = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;
using Layout = BlasObject<cublasLtMatrixLayout_t>;
using Description = BlasObject<cublasLtMatmulDesc_t>;
using Preference = BlasObject<cublasLtMatmulPreference_t>;

}  // namespace orr_cuda
