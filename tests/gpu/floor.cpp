// SPDX-License-Identifier: Apache-2.0
//
// The least time that this card takes for copies and matrix products, whatever Orrery makes of
// them: cuMemcpy, and the fastest of cuBLASLt's algorithms, with any split of K, on random numbers
// and rows that are multiples of 64 elements apart. By events of the device, the best of several
// laps.
//
//   gpu-floor DTYPE:M:N:K:TURNED ...   DTYPE is f32 or bf16; TURNED is n, a, b or ab: which of the
//                                      factors lie transposed in memory
//
// Prints "copy BYTES_PER_SECOND", read and written bytes counted, then a line for each product:
// what was asked, milliseconds.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <orrery/sdk/plugin.hpp>

#include "blas.h"
#include "device.h"
#include "driver.h"

namespace {

using namespace orr_cuda;

constexpr size_t workspace_bytes = size_t{64} << 20;
constexpr int most_algorithms = 32, laps = 5;

struct Memory {
  Memory(size_t bytes) : bytes(bytes) { check(driver().cuMemAlloc(&at, bytes), "cuMemAlloc"); }
  ~Memory() { driver().cuMemFree(at); }
  Memory(const Memory&) = delete;

  CUdeviceptr at = 0;
  size_t bytes;
};

// Normal numbers of the dtype, as bits.
std::vector<char> random_bytes(bool f32) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<char> bytes(size_t{1} << 22);
  const size_t size = f32 ? 4 : 2;
  for (size_t i = 0; i < bytes.size(); i += size) {
    const float x = normal(random);
    uint32_t word;
    std::memcpy(&word, &x, 4);
    if (!f32) word >>= 16;
    std::memcpy(&bytes[i], &word, size);
  }
  return bytes;
}

void fill(const Memory& memory, const std::vector<char>& bytes, CUstream stream) {
  for (size_t at = 0; at < memory.bytes; at += bytes.size())
    check(driver().cuMemcpyAsync(memory.at + at, reinterpret_cast<CUdeviceptr>(bytes.data()),
                                 std::min(bytes.size(), memory.bytes - at), stream),
          "cuMemcpyAsync");
}

class Clock {
 public:
  Clock() {
    check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (CUevent& e : event_) check(driver().cuEventCreate(&e, 0), "cuEventCreate");
  }
  // The least milliseconds of a call, once it is warm.
  template <class Call>
  float best(Call call) {
    float least = 1e30f;
    for (int lap = 0; lap <= laps; ++lap) {
      check(driver().cuEventRecord(event_[0], stream), "cuEventRecord");
      call();
      check(driver().cuEventRecord(event_[1], stream), "cuEventRecord");
      while (driver().cuEventQuery(event_[1]) == CUDA_ERROR_NOT_READY) {
      }
      float ms = 0;
      check(driver().cuEventElapsedTime(&ms, event_[0], event_[1]), "cuEventElapsedTime");
      if (lap > 0) least = std::min(least, ms);
    }
    return least;
  }
  CUstream stream = nullptr;

 private:
  CUevent event_[2];
};

double copied_per_second(Clock& clock) {
  const Memory from(size_t{1} << 30), to(size_t{1} << 30);
  fill(from, random_bytes(true), clock.stream);
  const float ms = clock.best([&] {
    check(driver().cuMemcpyAsync(to.at, from.at, to.bytes, clock.stream), "cuMemcpyAsync");
  });
  return 2e3 * static_cast<double>(to.bytes) / ms;
}

struct Product {
  bool f32, turned_a, turned_b;
  uint64_t m, n, k;

  explicit Product(const std::string& text) {
    std::istringstream words(text);
    std::string dtype, part, turned;
    std::getline(words, dtype, ':');
    for (uint64_t* to : {&m, &n, &k}) std::getline(words, part, ':'), *to = std::stoull(part);
    words >> turned;
    f32 = dtype == "f32";
    turned_a = turned.find('a') != std::string::npos,
    turned_b = turned.find('b') != std::string::npos;
  }
  size_t element() const { return f32 ? 4 : 2; }
};

uint64_t pitched(uint64_t n) { return (n + 63) / 64 * 64; }

// A matrix of rows x columns in row-major order, which the library reads as its transpose.
struct Matrix {
  uint64_t rows, columns;
  size_t bytes(const Product& p) const { return rows * pitched(columns) * p.element(); }
  BlasObject<cublasLtMatrixLayout_t> layout(const Product& p) const {
    cublasLtMatrixLayout_t made = nullptr;
    check_blas(blas().cublasLtMatrixLayoutCreate(&made, p.f32 ? CUDA_R_32F : CUDA_R_16BF, columns,
                                                 rows, static_cast<int64_t>(pitched(columns))),
               "cublasLtMatrixLayoutCreate");
    return {made, blas().cublasLtMatrixLayoutDestroy};
  }
};

BlasObject<cublasLtMatmulDesc_t> description(const Product& p) {
  cublasLtMatmulDesc_t made = nullptr;
  check_blas(blas().cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  const auto turn = [&](cublasLtMatmulDescAttributes_t which, bool turned) {
    const int32_t value = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_blas(blas().cublasLtMatmulDescSetAttribute(made, which, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
  };
  turn(CUBLASLT_MATMUL_DESC_TRANSA, p.turned_b), turn(CUBLASLT_MATMUL_DESC_TRANSB, p.turned_a);
  return {made, blas().cublasLtMatmulDescDestroy};
}

BlasObject<cublasLtMatmulPreference_t> preference() {
  cublasLtMatmulPreference_t made = nullptr;
  check_blas(blas().cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  check_blas(
      blas().cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace_bytes, sizeof workspace_bytes),
      "cublasLtMatmulPreferenceSetAttribute");
  return {made, blas().cublasLtMatmulPreferenceDestroy};
}

// The product y = a * b in memory of the device.
class Multiplication {
 public:
  Multiplication(const Product& p, CUstream stream)
      : a_(p.turned_a ? Matrix{p.k, p.m} : Matrix{p.m, p.k}),
        b_(p.turned_b ? Matrix{p.n, p.k} : Matrix{p.k, p.n}),
        y_{p.m, p.n},
        stream_(stream),
        at_{{a_.bytes(p)}, {b_.bytes(p)}, {y_.bytes(p)}, {workspace_bytes}},
        layout_{a_.layout(p), b_.layout(p), y_.layout(p)},
        description_(description(p)) {
    const std::vector<char> numbers = random_bytes(p.f32);
    fill(at_[0], numbers, stream), fill(at_[1], numbers, stream);
  }

  std::vector<cublasLtMatmulHeuristicResult_t> algorithms() const {
    std::vector<cublasLtMatmulHeuristicResult_t> found(most_algorithms);
    int count = 0;
    const auto wishes = preference();
    check_blas(
        blas().cublasLtMatmulAlgoGetHeuristic(blas().handle, description_.get(), layout_[1].get(),
                                              layout_[0].get(), layout_[2].get(), layout_[2].get(),
                                              wishes.get(), most_algorithms, found.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic");
    found.resize(static_cast<size_t>(count));
    return found;
  }

  void run(const cublasLtMatmulAlgo_t& algorithm) const {
    const auto address = [this](int i) { return reinterpret_cast<void*>(at_[i].at); };
    const float one = 1, zero = 0;
    check_blas(
        blas().cublasLtMatmul(blas().handle, description_.get(), &one, address(1), layout_[1].get(),
                              address(0), layout_[0].get(), &zero, address(2), layout_[2].get(),
                              address(2), layout_[2].get(), &algorithm, address(3), workspace_bytes,
                              reinterpret_cast<cudaStream_t>(stream_)),
        "cublasLtMatmul");
  }

 private:
  Matrix a_, b_, y_;
  CUstream stream_;
  Memory at_[4];
  BlasObject<cublasLtMatrixLayout_t> layout_[3];
  BlasObject<cublasLtMatmulDesc_t> description_;
};

float milliseconds(const Product& p, Clock& clock) {
  const Multiplication product(p, clock.stream);
  float least = 1e30f;
  for (const auto& found : product.algorithms())
    least = std::min(least, clock.best([&] { product.run(found.algo); }));
  return least;
}

}  // namespace

int main(int argc, char** argv) try {
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(driver().cuInit(0), "cuInit");
  check(driver().cuDeviceGet(&device, 0), "cuDeviceGet");
  check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Clock clock;
  std::printf("copy %.6g\n", copied_per_second(clock));
  for (int i = 1; i < argc; ++i) {
    std::printf("%s %.6g\n", argv[i], static_cast<double>(milliseconds(Product(argv[i]), clock)));
    std::fflush(stdout);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "gpu-floor: %s\n", e.what());
  return 1;
}
