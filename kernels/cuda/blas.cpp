// SPDX-License-Identifier: Apache-2.0
#include "blas.h"

namespace orr_cuda {

Blas::Blas() {
  void* library =
      open_library("ORRERY_CUBLASLT_LIBRARY", {"libcublasLt.so.13", "libcublasLt.so.12"},
                   "libcublasLt.so.13 was not found: install cuBLAS, or name it with "
                   "ORRERY_CUBLASLT_LIBRARY");
  ORR_BLAS_FUNCTIONS(ORR_NEED)
  if (cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS)
    throw orr::Error(ORR_UNAVAILABLE, "cuBLASLt cannot work with this driver: update the driver");
}

const Blas& blas() {
  static const Blas opened;
  return opened;
}

void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw orr::Error(ORR_FAILED, std::string(what) + ": " + blas().cublasLtGetStatusString(status));
}

}  // namespace orr_cuda
