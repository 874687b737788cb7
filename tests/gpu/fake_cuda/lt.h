// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt's objects in the fake, and its algorithms. Each algorithm sums K in an order of its own,
// and which one comes first depends on the shape: a caller whose bits may not depend on a dim must
// not let that dim choose.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace fake {

struct Layout {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t leading, batch_stride = 0;
  int32_t batch = 1;
};

struct Description {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t turn_a = CUBLAS_OP_N, turn_b = CUBLAS_OP_N;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

enum class Order : uint32_t { forward, backward, halves, split };

// What lies in a cublasLtMatmulAlgo_t.
struct Algorithm {
  static constexpr uint64_t known = 0x66616b65;
  uint64_t magic;
  Order order;
  uint32_t alignment[4];  // of a, b, c, d
  uint64_t workspace;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T, class Handle>
T& object(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}

struct Product {
  Description description;
  Layout a, b, c, d;
  Algorithm algorithm;
  double alpha, beta;
};

// d = alpha * op(a) op(b) + beta * c over host memory.
void multiply(const Product& p, const char* a, const char* b, const char* c, char* d);

uint64_t bytes_of(cudaDataType type);
// From the first element to behind the last one of all matrices of a batch.
uint64_t extent(const Layout& x);

}  // namespace fake
