// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include <orrery/sdk/plugin.hpp>

#include "function.h"
#include "op.h"
#include "product_race.h"

namespace orr_cuda {
namespace {

constexpr int most_candidates = 32;

cudaDataType_t data_type(int32_t dtype) {
  static constexpr cudaDataType_t types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16BF, CUDA_R_16F};
  if (dtype == ORR_F8_E4M3) return CUDA_R_8F_E4M3;
  return dtype == ORR_F8_E5M2 ? CUDA_R_8F_E5M2 : types[dtype - ORR_F32];
}

Layout layout(const Matrix& x, const MatmulShape& shape, int32_t dtype) {
  cublasLtMatrixLayout_t made = nullptr;
  ORR_BLAS(cublasLtMatrixLayoutCreate, &made, data_type(dtype), static_cast<uint64_t>(x.rows),
           static_cast<uint64_t>(x.cols), x.leading);
  Layout owned(made, blas().cublasLtMatrixLayoutDestroy);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, const auto& value) {
    ORR_BLAS(cublasLtMatrixLayoutSetAttribute, made, which, &value, sizeof value);
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(shape.g));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x.batch_stride);
  return owned;
}

// f32 is f32, but for fast products; products of fewer bits are summed in f32.
cublasComputeType_t compute_type(const MatmulShape& shape) {
  if (shape.dtype == ORR_F64) return CUBLAS_COMPUTE_64F;
  return shape.fast && shape.dtype == ORR_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

template <class T>
void describe(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t which, const T& value) {
  ORR_BLAS(cublasLtMatmulDescSetAttribute, product, which, &value, sizeof value);
}

// The library looks at the addresses' alignment when it is asked for algorithms.
const void* const any_address = reinterpret_cast<const void*>(uintptr_t{256});

Description description(const MatmulShape& shape, const Epilogue& epilogue) {
  cublasLtMatmulDesc_t made = nullptr;
  ORR_BLAS(cublasLtMatmulDescCreate, &made, compute_type(shape),
           shape.dtype == ORR_F64 ? CUDA_R_64F : CUDA_R_32F);
  Description owned(made, blas().cublasLtMatmulDescDestroy);
  const auto turn = [](bool turned) { return int32_t{turned ? CUBLAS_OP_T : CUBLAS_OP_N}; };
  describe(made, CUBLASLT_MATMUL_DESC_TRANSA, turn(shape.b->turned));
  describe(made, CUBLASLT_MATMUL_DESC_TRANSB, turn(shape.a->turned));
  describe(made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue.kind);
  // Else sums of eight bits are moved to full registers now and then.
  if (shape.fast && is_eight_bits(shape.dtype))
    describe(made, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
  if (epilogue.bias >= 0) describe(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, any_address);
  if (!epilogue.aux_at) return owned;
  describe(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, any_address);
  describe(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, epilogue.aux_at->leading);
  describe(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, epilogue.aux_at->batch_stride);
  return owned;
}

Preference preference(bool may_split, uint64_t workspace, const Alignment& alignment) {
  cublasLtMatmulPreference_t made = nullptr;
  ORR_BLAS(cublasLtMatmulPreferenceCreate, &made);
  Preference owned(made, blas().cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    ORR_BLAS(cublasLtMatmulPreferenceSetAttribute, made, which, &value, sizeof value);
  };
  const uint32_t schemes =
      may_split ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(alignment.b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(alignment.a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(alignment.y));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(alignment.y));
  return owned;
}

int32_t parts_of(const cublasLtMatmulAlgo_t& algorithm) {
  int32_t parts = 0;
  size_t written = 0;
  ORR_BLAS(cublasLtMatmulAlgoConfigGetAttribute, &algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
           &parts, sizeof parts, &written);
  return parts;
}

// So many elements side by side; the next ones are as aligned as before.
void resize(Matrix& x, int64_t rows) {
  x.rows = rows;
  x.leading = round_up(rows, 16) + x.leading % 16;
}

// The nominal product for this shape. REQUIRES: a is not turned.
MatmulShape nominal_of(const MatmulShape& shape) {
  MatmulShape nominal = shape;
  Matrix &a = *nominal.a, &b = *nominal.b, &y = *nominal.y;
  nominal.g = 1;
  resize(a, a.rows), resize(y, nominal_cols);
  a.cols = y.cols = nominal_rows;
  resize(b, b.turned ? b.rows : nominal_cols);
  if (b.turned) b.cols = nominal_cols;
  return nominal;
}

size_t bytes_of(const Matrix& x, const MatmulShape& shape, int32_t dtype) {
  const int64_t elements = (shape.g - 1) * x.batch_stride + x.cols * x.leading;
  return static_cast<size_t>(elements * orr_dtype_bytes(dtype));
}

std::string text_of(const Matrix& x) {
  return std::to_string(x.rows) + "x" + std::to_string(x.cols) + (x.turned ? "t/" : "/") +
         std::to_string(x.leading) + "/" + std::to_string(x.batch_stride);
}

std::string text_of(const MatmulShape& shape, const Alignment& alignment) {
  std::string dtypes = std::to_string(shape.dtype);
  if (is_eight_bits(shape.dtype))
    dtypes += "/" + std::to_string(shape.dtype_b) + "/" + std::to_string(shape.dtype_y);
  return std::string(shape.fast ? "fast" : "exact") + " dtype " + dtypes + " groups " +
         std::to_string(shape.g) + " depth " + std::to_string(shape.k) + " a " + text_of(*shape.a) +
         " b " + text_of(*shape.b) + " y " + text_of(*shape.y) + " aligned " +
         std::to_string(alignment.a) + "/" + std::to_string(alignment.b) + "/" +
         std::to_string(alignment.y);
}

std::string extent_of(const MatmulShape& shape) {
  const std::string k = std::to_string(shape.k);
  return "[" + std::to_string(shape.m) + ", " + k + "] x [" + k + ", " + std::to_string(shape.n) +
         "]";
}

void tell_own(const MatmulShape& shape) {
  const std::string text = "cuda: cuBLASLt computes " + extent_of(shape) +
                           " by an algorithm of its own (cublaslt." + dtype_name(shape.dtype) +
                           ".own/1): with another number of rows its bits may differ";
  static std::set<std::string> told;
  if (told.insert(text).second) orr::host->log(ORR_LOG_WARN, text.c_str());
}

// Whether a result has enough elements for another order of sums to show. Of 16-bit results few do:
// they round most of it away.
bool shows_order(const MatmulShape& shape) {
  const int64_t least = orr_dtype_bytes(shape.dtype_y) == 2 ? 1 << 18 : 64;
  return shape.g * shape.m * shape.n >= least;
}

}  // namespace

size_t blas_workspace(const MatmulShape& shape) {
  constexpr size_t least = size_t{1} << 20, most = size_t{32} << 20;
  if (!shape.rows_summed && !shape.fast) return least;
  const auto parts = static_cast<size_t>(8 * shape.m * shape.n * orr_dtype_bytes(ORR_F32));
  return std::clamp(parts / 256 * 256, least, most);
}

Product::Call::Call(const MatmulShape& shape, const Epilogue& epilogue)
    : product(description(shape, epilogue)),
      a(layout(*shape.a, shape, shape.dtype)),
      b(layout(*shape.b, shape, shape.dtype_b)),
      y(layout(*shape.y, shape, shape.dtype_y)),
      c(layout(epilogue.added_at ? *epilogue.added_at : *shape.y, shape, shape.dtype_y)) {}

Product::Product(const MatmulShape& shape, const Alignment& alignment, bool raced,
                 const Epilogue& epilogue)
    : shape_(shape),
      alignment_(alignment),
      epilogue_(epilogue),
      workspace_(blas_workspace(shape)),
      call_(shape, epilogue) {
  choose(raced);
}

bool Product::takes(const cublasLtMatmulAlgo_t& algorithm, const Call& call) const {
  cublasLtMatmulHeuristicResult_t real{};
  return blas().cublasLtMatmulAlgoCheck(blas().handle, call.product.get(), call.b.get(),
                                        call.a.get(), call.c.get(), call.y.get(), &algorithm,
                                        &real) == CUBLAS_STATUS_SUCCESS &&
         real.workspaceSize <= workspace_;
}

Product::Algorithms Product::choices(const MatmulShape& shape, const Epilogue& epilogue) const {
  const bool may_split = shape.rows_summed || shape.fast;
  const Call call(shape, epilogue);
  const auto wishes = preference(may_split, workspace_, alignment_);
  cublasLtMatmulHeuristicResult_t found[most_candidates]{};
  int count = 0;
  const cublasStatus_t status = blas().cublasLtMatmulAlgoGetHeuristic(
      blas().handle, call.product.get(), call.b.get(), call.a.get(), call.c.get(), call.y.get(),
      wishes.get(), most_candidates, found, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
  Algorithms all;
  for (int i = 0; i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS && (may_split || parts_of(found[i].algo) <= 1))
      all.push_back(found[i].algo);
  return all;
}

Product::Algorithms Product::candidates(const Epilogue& epilogue) const {
  const Call call(shape_, epilogue);
  const auto fits = [&](const cublasLtMatmulAlgo_t& x) { return takes(x, call); };
  Algorithms all;
  if (!shape_.rows_summed && !shape_.fast) {
    all = choices(nominal_of(shape_), epilogue);
    if (all.empty() || !fits(all.front())) {
      all.clear();
      tell_own(shape_);
    }
  }
  const Algorithms own = choices(shape_, epilogue);
  all.insert(all.end(), own.begin(), own.end());
  Algorithms fitting;
  for (const cublasLtMatmulAlgo_t& x : all) {
    const auto equal = [&](const cublasLtMatmulAlgo_t& y) {
      return std::memcmp(&x, &y, sizeof x) == 0;
    };
    if (fits(x) && std::ranges::none_of(fitting, equal)) fitting.push_back(x);
  }
  return fitting;
}

// What to do where the library has none.
std::string Product::remedy() const {
  if (!is_eight_bits(shape_.dtype)) return "";
  return " of eight bits, which GPUs from compute capability 8.9 on multiply: use "
         "compute = \"bf16\" of strategy.precision";
}

// A product that is not fast has the bits that it has alone.
void Product::choose(bool raced) {
  Algorithms fitting = candidates(shape_.fast ? epilogue_ : Epilogue());
  usable_ = !fitting.empty() && takes(fitting.front(), call_);
  if (!usable_ && !epilogue_.name().empty()) return;
  if (fitting.empty())
    throw orr::Error(ORR_FAILED, "cuBLASLt has no algorithm for " + extent_of(shape_) + remedy());
  algorithm_ = fitting.front();
  if (!raced || (!shape_.fast && !shows_order(shape_))) return;
  std::erase_if(fitting, [&](const cublasLtMatmulAlgo_t& x) { return !takes(x, call_); });
  algorithm_ = fastest(fitting);
}

cublasLtMatmulAlgo_t Product::fastest(const Algorithms& candidates) {
  // Behind y lies what an epilogue reads or writes beside, then a bias.
  const auto& beside = epilogue_.added_at ? epilogue_.added_at : epilogue_.aux_at;
  const size_t y_bytes = round_up(bytes_of(*shape_.y, shape_, shape_.dtype_y), 256),
               aux_bytes = beside ? round_up(bytes_of(*beside, shape_, shape_.dtype_y), 256) : 0,
               bias_bytes = epilogue_.bias >= 0 ? y_bytes : 0;
  const RaceTrack track{bytes_of(*shape_.a, shape_, shape_.dtype),
                        bytes_of(*shape_.b, shape_, shape_.dtype_b),
                        y_bytes + aux_bytes + bias_bytes,
                        workspace_,
                        shape_.dtype,
                        shape_.fast ? 0 : bytes_of(*shape_.y, shape_, shape_.dtype_y)};
  const std::string then = epilogue_.name();
  return fastest_of(candidates, text_of(shape_, alignment_) + (then.empty() ? "" : " then " + then),
                    track,
                    [&](CUstream stream, ProductPlaces at, const cublasLtMatmulAlgo_t& algorithm) {
                      at.added = at.aux = at.y + y_bytes, at.bias = at.aux + aux_bytes;
                      launch(stream, at, algorithm);
                    });
}

void Product::launch(CUstream stream, const ProductPlaces& at,
                     const cublasLtMatmulAlgo_t& algorithm) const {
  const double one64 = 1, zero64 = 0;
  const float one32 = 1;
  const void* one = shape_.dtype == ORR_F64 ? static_cast<const void*>(&one64) : &one32;
  const void* zero = &zero64;  // its bits are those of a float, too
  const cublasLtMatmulDesc_t product = call_.product.get();
  if (epilogue_.bias >= 0) describe(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(at.bias));
  if (epilogue_.aux_at)
    describe(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointer(at.aux));
  const bool adds = epilogue_.added_at.has_value();
  ORR_BLAS(cublasLtMatmul, blas().handle, product, one, pointer(at.b), call_.b.get(), pointer(at.a),
           call_.a.get(), adds ? one : zero, pointer(adds ? at.added : at.y), call_.c.get(),
           pointer(at.y), call_.y.get(), &algorithm, pointer(at.workspace), workspace_,
           reinterpret_cast<cudaStream_t>(stream));
}

}  // namespace orr_cuda
