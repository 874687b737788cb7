// SPDX-License-Identifier: Apache-2.0
//
// What all device functions share: how they are declared, and element types with their
// accumulators. A function takes one struct of arguments, declared in a header that the host
// includes too. Tests compile these files for the host as well (tests/gpu/emulator), with their own
// ORR_KERNEL.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>

#include <type_traits>

// Defines extern "C" name(Args) with at most `threads` threads in a block; the last argument is the
// template that does the work. For large blocks ptxas would spill registers so that more blocks
// fit; a minimum of 1 block prevents that. For small blocks ptxas decides (0), or ORR_KERNEL_BLOCKS
// says how many blocks are to fit.
#ifndef ORR_KERNEL
#define ORR_BLOCKS(threads) ((threads) >= 512 ? 1 : 0)
#define ORR_KERNEL(name, threads, Args, ...) \
  ORR_KERNEL_BLOCKS(name, threads, ORR_BLOCKS(threads), Args, __VA_ARGS__)
#define ORR_KERNEL_BLOCKS(name, threads, blocks, Args, ...)     \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ Args args) {                 \
    __VA_ARGS__(args);                                          \
  }
namespace orr_cuda {
// The block's dynamic shared memory, aligned to 16 bytes.
__device__ inline char* dynamic_shared() {
  extern __shared__ __align__(16) char bytes[];
  return bytes;
}
}  // namespace orr_cuda
#endif

// Define a function for each real dtype, and for each dtype of numbers.
#define ORR_REAL_KERNELS(name, threads, Args)         \
  ORR_KERNEL(name##_f32, threads, Args, name<float>)  \
  ORR_KERNEL(name##_f64, threads, Args, name<double>) \
  ORR_KERNEL(name##_bf16, threads, Args, name<Bf16>)  \
  ORR_KERNEL(name##_f16, threads, Args, name<F16>)
#define ORR_NUMBER_KERNELS(name, threads, Args)        \
  ORR_REAL_KERNELS(name, threads, Args)                \
  ORR_KERNEL(name##_i32, threads, Args, name<int32_t>) \
  ORR_KERNEL(name##_i64, threads, Args, name<int64_t>) \
  ORR_KERNEL(name##_u8, threads, Args, name<uint8_t>)

namespace orr_cuda {

using Bf16 = __nv_bfloat16;
using F16 = __half;

// The accumulator of each element type: f32 for f32 and 16-bit reals, f64 for f64, i64 for
// integers.
template <class T>
using Acc = std::conditional_t<std::is_integral_v<T>, int64_t,
                               std::conditional_t<std::is_same_v<T, double>, double, float>>;

template <class T>
__device__ inline Acc<T> get(T x) {
  return Acc<T>(x);
}
// Rounded to nearest even; integers wrap.
template <class T>
__device__ inline T rounded(Acc<T> x) {
  return T(x);
}

// Two elements in one word, as in memory.
__device__ inline uint32_t pack(Bf16, float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline uint32_t pack(F16, float a, float b) {
  const __half2 both = __floats2half2_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}

template <class A>
__device__ inline A plus(A a, A b) {
  return a + b;
}
__device__ inline int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

// NaN wins.
template <class A>
__device__ inline A larger(A a, A b) {
  return a >= b || a != a ? a : b;
}
__device__ inline __half2 larger(__half2 a, __half2 b) { return __hmax2_nan(a, b); }
__device__ inline __nv_bfloat162 larger(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __hmax2_nan(a, b);
}
template <class A>
__device__ inline A smaller(A a, A b) {
  return a <= b || a != a ? a : b;
}

// An index, i64 if `wide`, else i32.
__device__ inline int64_t index_at(const void* list, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(list)[i] : static_cast<const int32_t*>(list)[i];
}

}  // namespace orr_cuda
