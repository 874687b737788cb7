// SPDX-License-Identifier: Apache-2.0
//
// The products of the fake cuBLASLt, in the order of each algorithm.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <vector>

#include "lt.h"

namespace fake {
namespace {

float get(float x) { return x; }
double get(double x) { return x; }
float get(__nv_bfloat16 x) { return __bfloat162float(x); }
float get(__half x) { return __half2float(x); }

float get(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
float get(__nv_fp8_e5m2 x) { return static_cast<float>(x); }

void put(float& to, float x) { to = x; }
void put(double& to, double x) { to = x; }
void put(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }
void put(__half& to, float x) { to = __float2half_rn(x); }

// A factor as TF32 has it: 10 bits of fraction, rounded to nearest.
float as_tf32(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & ~0x1fffu);
}

// Column-major [rows, cols] of op(x), widened.
template <class A, class T>
std::vector<A> dense(const T* x, const Layout& l, bool turned) {
  const uint64_t rows = turned ? l.cols : l.rows, cols = turned ? l.rows : l.cols;
  std::vector<A> all(rows * cols);
  for (uint64_t j = 0; j < l.cols; ++j)
    for (uint64_t i = 0; i < l.rows; ++i)
      all[turned ? j + i * rows : i + j * rows] = get(x[i + j * static_cast<uint64_t>(l.leading)]);
  return all;
}

// column[i] += sum over k in [from, to) of a[i,k] * b[k].
template <class A>
void add_terms(const A* a, const A* b, uint64_t m, uint64_t from, uint64_t to, bool backward,
               A* column) {
  for (uint64_t n = from; n < to; ++n) {
    const uint64_t k = backward ? to - 1 - (n - from) : n;
    for (uint64_t i = 0; i < m; ++i) column[i] += a[i + k * m] * b[k];
  }
}

template <class A>
std::vector<A> column_of(Order order, const std::vector<A>& a, const A* b, uint64_t m, uint64_t k) {
  std::vector<A> sum(m), rest(m);
  if (order == Order::forward || order == Order::backward) {
    add_terms(a.data(), b, m, 0, k, order == Order::backward, sum.data());
    return sum;
  }
  add_terms(a.data(), b, m, 0, k / 2, order == Order::split, sum.data());
  add_terms(a.data(), b, m, k / 2, k, false, rest.data());
  for (uint64_t i = 0; i < m; ++i) sum[i] += rest[i];
  return sum;
}

// 0.5 x (1 + tanh u) and its derivative, u = sqrt(2/pi) (x + 0.044715 x^3).
template <class A>
A gelu(A x) {
  return A(0.5) * x * (1 + std::tanh(A(0.7978845608028654) * (x + A(0.044715) * x * x * x)));
}
template <class A>
A gelu_slope(A x) {
  const A t = std::tanh(A(0.7978845608028654) * (x + A(0.044715) * x * x * x));
  return A(0.5) * (1 + t) +
         A(0.5) * x * (1 - t * t) * A(0.7978845608028654) * (1 + 3 * A(0.044715) * x * x);
}

// What the epilogue makes of one sum, which it rounds once, at the end; `aux` is its place there.
template <class T, class A>
A finish(const Description& p, A x, const T* bias, T* aux) {
  if (p.has_bias()) x += get(*bias);
  if (p.keeps()) put(*aux, x);
  if (p.has_gelu()) return gelu(x);
  return p.has_slope() ? x * gelu_slope(A(get(*aux))) : x;
}

// With FAKE_GAPS, makes NaN of what lies behind the columns of a result, up to a multiple of 64
// elements, where the next row may begin: nobody may read it.
template <class T>
void fill_gaps(T* to, const Layout& x) {
  static const bool wanted = std::getenv("FAKE_GAPS");
  const auto leading = static_cast<uint64_t>(x.leading);
  for (uint64_t j = 0; wanted && j + 1 < x.cols; ++j) {
    T* const end = to + x.rows + j * leading;
    const uint64_t gap = -(reinterpret_cast<uintptr_t>(end) / sizeof(T)) % 64;
    std::memset(static_cast<void*>(end), 0xff, std::min(leading - x.rows, gap) * sizeof(T));
  }
}

// Factors Ta and Tb, a result T.
template <class Ta, class Tb, class T, class A>
void multiply_as(const Product& p, const char* a, const char* b, const char* c, char* d,
                 const Beside& beside) {
  const uint64_t m = p.d.rows, k = p.description.turn_a ? p.a.rows : p.a.cols;
  for (int32_t g = 0; g < p.d.batch; ++g) {
    const auto of = [g](auto* base, const Layout& l) { return base + g * l.batch_stride; };
    auto wide_a = dense<A>(of(reinterpret_cast<const Ta*>(a), p.a), p.a, p.description.turn_a);
    auto wide_b = dense<A>(of(reinterpret_cast<const Tb*>(b), p.b), p.b, p.description.turn_b);
    if constexpr (std::is_same_v<T, float>)
      if (p.description.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        for (auto* factor : {&wide_a, &wide_b})
          std::ranges::transform(*factor, factor->begin(), as_tf32);
    const T* from = of(reinterpret_cast<const T*>(c), p.c);
    T* to = of(reinterpret_cast<T*>(d), p.d);
    const Layout at_aux = p.description.aux_of(p.d);
    T* aux = beside.aux ? of(reinterpret_cast<T*>(beside.aux), at_aux) : nullptr;
    const T* bias = reinterpret_cast<const T*>(beside.bias);
    for (uint64_t j = 0; j < p.d.cols; ++j) {
      const std::vector<A> sum = column_of(p.algorithm.order, wide_a, &wide_b[j * k], m, k);
      for (uint64_t i = 0; i < m; ++i) {
        const uint64_t at = i + j * static_cast<uint64_t>(p.d.leading);
        const A scaled = static_cast<A>(p.alpha) * sum[i];
        const uint64_t at_c = i + j * static_cast<uint64_t>(p.c.leading);
        const A whole = p.beta == 0 ? scaled : scaled + static_cast<A>(p.beta) * get(from[at_c]);
        put(to[at], finish(p.description, whole, bias + i,
                           aux + i + j * static_cast<uint64_t>(at_aux.leading)));
      }
    }
    fill_gaps(to, p.d);
  }
}

using Bytes = std::tuple<const char*, const char*, const char*, char*>;

template <class T, class A>
void multiply_as(const Product& p, const Bytes& at, const Beside& beside) {
  const auto& [a, b, c, d] = at;
  multiply_as<T, T, T, A>(p, a, b, c, d, beside);
}

template <class Ta, class Tb>
void multiply_eight(const Product& p, const Bytes& at, const Beside& beside) {
  const auto& [a, b, c, d] = at;
  switch (p.d.type) {
    case CUDA_R_16BF: return multiply_as<Ta, Tb, __nv_bfloat16, float>(p, a, b, c, d, beside);
    case CUDA_R_16F: return multiply_as<Ta, Tb, __half, float>(p, a, b, c, d, beside);
    default: return multiply_as<Ta, Tb, float, float>(p, a, b, c, d, beside);
  }
}

void multiply_eight(const Product& p, const Bytes& at, const Beside& beside) {
  using E4M3 = __nv_fp8_e4m3;
  using E5M2 = __nv_fp8_e5m2;
  if (p.a.type == CUDA_R_8F_E5M2) return multiply_eight<E5M2, E4M3>(p, at, beside);
  if (p.b.type == CUDA_R_8F_E5M2) return multiply_eight<E4M3, E5M2>(p, at, beside);
  multiply_eight<E4M3, E4M3>(p, at, beside);
}

}  // namespace

uint64_t bytes_of(cudaDataType type) {
  if (type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2) return 1;
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

uint64_t extent(const Layout& x) {
  const uint64_t last = (x.cols - 1) * static_cast<uint64_t>(x.leading) + x.rows +
                        static_cast<uint64_t>(x.batch - 1) * static_cast<uint64_t>(x.batch_stride);
  return last * bytes_of(x.type);
}

void multiply(const Product& p, const char* a, const char* b, const char* c, char* d,
              const Beside& beside) {
  const Bytes at{a, b, c, d};
  if (bytes_of(p.a.type) == 1) return multiply_eight(p, at, beside);
  switch (p.d.type) {
    case CUDA_R_64F: return multiply_as<double, double>(p, at, beside);
    case CUDA_R_16BF: return multiply_as<__nv_bfloat16, float>(p, at, beside);
    case CUDA_R_16F: return multiply_as<__half, float>(p, at, beside);
    default: return multiply_as<float, float>(p, at, beside);
  }
}

}  // namespace fake
