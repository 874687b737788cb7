// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt's stand-in, strict: what the library would reject or read wrongly ends the program by
// name.
#include "lt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fake_nccl/driver.h"
#include "fake_nccl/memory.h"
#include "fake_nccl/misuse.h"

namespace fake {
namespace {

uint64_t bits_of(uint64_t x) { return (x * 0x9E3779B97F4A7C15u) >> 40; }

bool is_eight(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

// Of eight bits the library has products of rows of K alone, of which one factor at least is E4M3,
// with all of 16 bytes, and results of more bits.
bool fits_eight(const Description& p, const Layout& a, const Layout& b, const Layout& d) {
  const bool short_results = d.type == CUDA_R_16BF || d.type == CUDA_R_16F;
  return is_eight(b.type) && (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) && p.turn_a &&
         !p.turn_b && p.compute == CUBLAS_COMPUTE_32F && p.scale == CUDA_R_32F &&
         (short_results || d.type == CUDA_R_32F) && a.rows % 16 == 0 && d.rows % 16 == 0 &&
         a.leading % 16 == 0 && b.leading % 16 == 0 && bytes_of(d.type) * d.leading % 16 == 0;
}

bool types_fit(const Description& p, const Layout& a, const Layout& b, const Layout& d) {
  if (is_eight(a.type) || is_eight(b.type)) return is_eight(a.type) && fits_eight(p, a, b, d);
  return a.type == b.type && a.type == d.type;
}

// op(a) is [m, k], op(b) is [k, n].
bool fits(const Description& p, const Layout& a, const Layout& b, const Layout& d) {
  const uint64_t m = p.turn_a ? a.cols : a.rows, ka = p.turn_a ? a.rows : a.cols;
  const uint64_t n = p.turn_b ? b.rows : b.cols, kb = p.turn_b ? b.cols : b.rows;
  for (const Layout* x : {&a, &b, &d})
    if (x->leading < static_cast<int64_t>(x->rows) || x->rows == 0 || x->cols == 0) return false;
  return m == d.rows && n == d.cols && ka == kb && a.batch == d.batch && b.batch == d.batch &&
         types_fit(p, a, b, d);
}

// Odd columns have no epilogues, so that callers need a way without.
bool fits(const Description& p, const Layout& d) {
  if (p.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
  if (p.has_bias() && reinterpret_cast<uintptr_t>(p.bias) % 16 != 0) return false;
  if ((p.keeps() || p.has_slope()) &&
      (p.aux_leading % 8 != 0 || p.aux_leading < static_cast<int64_t>(d.rows) ||
       reinterpret_cast<uintptr_t>(p.aux) % 16 != 0))
    return false;
  return d.rows % 8 == 0;
}

// For tests: what was asked for.
void count_epilogue(const Product& p) {
  if (p.beta != 0) enter_driver("epilogue added");
  if (p.description.has_bias()) enter_driver("epilogue bias");
  if (p.description.has_gelu()) enter_driver("epilogue gelu");
  if (p.description.keeps()) enter_driver("epilogue kept");
  if (p.description.has_slope()) enter_driver("epilogue slope");
}

void count_aligned(const Product& p) {
  const char* const names[] = {"a aligned", "b aligned", "c aligned", "d aligned"};
  for (int i = 0; i < 4; ++i)
    if (p.algorithm.alignment[i] >= 16) enter_driver(names[i]);
}

const Algorithm& algorithm_of(const cublasLtMatmulAlgo_t* algo) {
  const auto& a = *reinterpret_cast<const Algorithm*>(algo);
  if (a.magic != Algorithm::known) misuse("algorithm that no heuristic gave", "cublasLtMatmul");
  return a;
}

double scalar(const void* p, cudaDataType type) {
  if (type == CUDA_R_64F) return *static_cast<const double*>(p);
  return *static_cast<const float*>(p);
}

// FAKE_LT_FASTEST names the only algorithm that does not seem to take ten seconds, by order and
// tile: "1 0".
bool seems_slow(const Algorithm& a) {
  const char* fastest = std::getenv("FAKE_LT_FASTEST");
  if (!fastest) return false;
  if (fastest != std::to_string(static_cast<int>(a.order)) + " " + std::to_string(a.tile))
    return true;
  note_call("fastest algorithm");
  return false;
}

uint64_t bytes_between(int64_t elements, const Layout& x) {
  return static_cast<uint64_t>(elements) * bytes_of(x.type);
}

char* operand(const void* address, const Layout& x, uint32_t alignment, const char* name) {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0)
    misuse("address less aligned than the algorithm needs", name);
  if ((x.cols > 1 && bytes_between(x.leading, x) % alignment != 0) ||
      (x.batch > 1 && bytes_between(x.batch_stride, x) % alignment != 0))
    misuse("columns less aligned than the algorithm needs", name);
  return memory::behind(address, extent(x), name);
}

// What the epilogue touches, which it adds to the ranges.
Beside beside_of(const Description& p, const Layout& d, std::vector<Range>& ranges) {
  Beside found{};
  if (p.has_bias()) {
    const uint64_t bytes = d.rows * bytes_of(d.type);
    char* bias = memory::behind(p.bias, bytes, "bias of cublasLtMatmul");
    ranges.push_back({bias, bytes, false});
    found.bias = bias;
  }
  if (p.keeps() || p.has_slope()) {
    const uint64_t bytes = extent(p.aux_of(d));
    found.aux = memory::behind(p.aux, bytes, "aux of cublasLtMatmul");
    ranges.push_back({found.aux, bytes, p.keeps()});
  }
  return found;
}

}  // namespace

Layout Description::aux_of(const Layout& d) const {
  Layout x = d;
  x.leading = aux_leading, x.batch_stride = aux_batch_stride;
  return x;
}

}  // namespace fake

using namespace fake;

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t) { return "error of the fake cuBLASLt"; }

size_t cublasLtGetVersion() { return 130000; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *to = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p) {
  delete &object<Description>(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t bytes) {
  Description& d = object<Description>(p);
  const auto set = [&](auto& to) {
    if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(d.turn_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(d.turn_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(d.epilogue);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return set(d.fast_sums);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(d.bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(d.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(d.aux_leading);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return set(d.aux_batch_stride);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t leading) {
  *to = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, cols, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p) {
  delete &object<Layout>(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t p,
                                                cublasLtMatrixLayoutAttribute_t which,
                                                const void* value, size_t bytes) {
  Layout& x = object<Layout>(p);
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof x.batch)
    std::memcpy(&x.batch, value, bytes);
  else if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof x.batch_stride)
    std::memcpy(&x.batch_stride, value, bytes);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  *to = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete &object<Preference>(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, size_t bytes) {
  Preference& wishes = object<Preference>(p);
  void* to = nullptr;
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: to = &wishes.workspace; break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: to = &wishes.schemes; break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: to = &wishes.alignment[0]; break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: to = &wishes.alignment[1]; break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: to = &wishes.alignment[2]; break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: to = &wishes.alignment[3]; break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const size_t wanted = which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4;
  if (bytes != wanted) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// A split of K comes first where it is allowed, and once where it is not, for callers to see.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* given) {
  const Layout &la = object<Layout>(a), &lb = object<Layout>(b), &ld = object<Layout>(d);
  const Preference& wishes = object<Preference>(preference);
  if (!fits(object<Description>(description), la, lb, ld)) return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t seed = bits_of(ld.rows * 31 + ld.cols * 17 + static_cast<uint64_t>(ld.batch));
  const bool splits = wishes.schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  *given = 0;
  for (uint32_t i = 0; i < 6 && *given < wanted; ++i) {
    const auto order = i < 2 && splits ? Order::split : static_cast<Order>((seed + i / 2) % 3);
    Algorithm made{Algorithm::known, order, i % 2, {}, std::min<uint64_t>(wishes.workspace, 65536)};
    if (!made.takes(ld)) continue;
    cublasLtMatmulHeuristicResult_t& r = results[(*given)++];
    std::copy(wishes.alignment, wishes.alignment + 4, made.alignment);
    r = {};
    std::memcpy(&r.algo, &made, sizeof made);
    r.workspaceSize = made.workspace;
    r.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    void* value, size_t bytes, size_t* written) {
  if (which != CUBLASLT_ALGO_CONFIG_SPLITK_NUM || bytes != sizeof(int32_t))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const int32_t parts = algorithm_of(algo).order == Order::split ? 2 : 1;
  std::memcpy(value, &parts, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!fits(object<Description>(description), object<Layout>(a), object<Layout>(b),
            object<Layout>(d)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!fits(object<Description>(description), object<Layout>(d)) ||
      !algorithm_of(algo).takes(object<Layout>(d)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = algorithm_of(algo).workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t la, const void* b,
                              cublasLtMatrixLayout_t lb, const void* beta, const void* c,
                              cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t bytes,
                              cudaStream_t stream) {
  if (enter_driver("cublasLtMatmul") != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Description& text = object<Description>(description);
  const Product p{text,
                  object<Layout>(la),
                  object<Layout>(lb),
                  object<Layout>(lc),
                  object<Layout>(ld),
                  algorithm_of(algo),
                  scalar(alpha, text.scale),
                  scalar(beta, text.scale)};
  if (!fits(text, p.a, p.b, p.d) || !fits(text, p.d) || !p.algorithm.takes(p.d) ||
      bytes < p.algorithm.workspace)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (is_eight(p.a.type)) {
    note_call("product of eight bits");
    for (const void* x : {a, b, static_cast<const void*>(d)})
      if (reinterpret_cast<uintptr_t>(x) % 16 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  }
  count_epilogue(p);
  count_aligned(p);
  for (const Layout* x : {&p.a, &p.b, &p.d})
    if ((x->rows | x->cols) * bytes_of(x->type) % 16 != 0) {
      note_call("product with an odd extent");
      break;
    }
  const char* pa = operand(a, p.a, p.algorithm.alignment[0], "a of cublasLtMatmul");
  const char* pb = operand(b, p.b, p.algorithm.alignment[1], "b of cublasLtMatmul");
  const char* pc = operand(c, p.c, p.algorithm.alignment[2], "c of cublasLtMatmul");
  char* pd = operand(d, p.d, p.algorithm.alignment[3], "d of cublasLtMatmul");
  char* scratch = memory::behind(workspace, p.algorithm.workspace, "workspace of cublasLtMatmul");
  std::vector<Range> ranges{{const_cast<char*>(pa), extent(p.a), false},
                            {const_cast<char*>(pb), extent(p.b), false},
                            {pd, extent(p.d), true},
                            {scratch, p.algorithm.workspace, true}};
  if (p.beta != 0 && pc != pd) ranges.push_back({const_cast<char*>(pc), extent(p.c), false});
  const Beside beside = beside_of(text, p.d, ranges);
  stream_of(reinterpret_cast<CUstream>(stream))
      .enqueue("cublasLtMatmul", ranges, [=, slow = seems_slow(p.algorithm)] {
        if (slow) pretend(10'000'000'000);
        std::memset(scratch, 0xfe, p.algorithm.workspace);
        multiply(p, pa, pb, pc, pd, beside);
      });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
