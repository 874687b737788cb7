// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt's objects in the fake, and its algorithms. Each order of sums has two algorithms, which
// differ in their tile, and which one comes first depends on the shape: a caller whose bits may not
// depend on a dim must not let that dim choose.
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
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_leading = 0, aux_batch_stride = 0;
  int8_t fast_sums = 0;  // of eight bits

  bool has(uint32_t flag) const { return epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue & flag; }
  bool has_bias() const { return has(CUBLASLT_EPILOGUE_BIAS); }
  bool has_gelu() const { return has(CUBLASLT_EPILOGUE_GELU); }
  bool has_slope() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool keeps() const {
    return has_gelu() && has(CUBLASLT_EPILOGUE_RELU_AUX & ~CUBLASLT_EPILOGUE_RELU);
  }
  // What an epilogue reads or writes beside a result of this layout.
  Layout aux_of(const Layout& d) const;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

enum class Order : uint32_t { forward, backward, split_axes, split };

// What lies in a cublasLtMatmulAlgo_t.
struct Algorithm {
  static constexpr uint64_t known = 0x66616b65;
  uint64_t magic;
  Order order;
  uint32_t tile;
  uint32_t alignment[4];  // of a, b, c, d
  uint64_t workspace;

  // Like a library without a kernel for every shape.
  bool takes(const Layout& d) const { return tile > 0 || d.rows != 52; }
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

// What an epilogue reads or writes, in host memory; null where it does not.
struct Beside {
  const char* bias;
  char* aux;
};

// d = epilogue of alpha * op(a) op(b) + beta * c over host memory.
void multiply(const Product& p, const char* a, const char* b, const char* c, char* d,
              const Beside& beside);

uint64_t bytes_of(cudaDataType type);
// From the first element to behind the last one of all matrices of a batch.
uint64_t extent(const Layout& x);

}  // namespace fake
