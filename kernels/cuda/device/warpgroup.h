// SPDX-License-Identifier: Apache-2.0
//
// Tensor cores as used by a warpgroup, four warps, of sm_90a: products of 64 rows by 16 and 16 by N
// with f32 sums, whose right operand, and left one if wanted, lie in shared memory. Warp w has the
// rows 16 * w and following, laid out as in mma.h. A matrix in shared memory has rows of 128 bytes,
// of which packet p of 16 bytes lies at p ^ row % 8, and begins at a multiple of 1,024 bytes. (PTX
// ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate".)
#pragma once

#include "mma.h"

#ifndef ORR_TENSOR_CORE
namespace orr_cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kWarpgroups = true;
#else
constexpr bool kWarpgroups = false;
#endif

// Describes the matrix `offset` bytes behind `at` to the instructions. `blocks`: bytes from 64 of
// its columns to the next 64, if these are the columns of the product.
__device__ inline uint64_t describe_matrix(const void* at, int offset, int blocks) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(at));
  constexpr uint64_t eight_rows = 1024, rows_of_128_bytes = 1;
  return (address / 16 + uint32_t(offset / 16 + (blocks / 16 << 16))) | (eight_rows >> 4) << 32 |
         rows_of_128_bytes << 62;
}

// Written by the threads themselves, shared memory is to be read by the instructions. Each thread
// calls it before a barrier.
__device__ inline void publish_to_products() {
  if constexpr (kWarpgroups) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Begins batches of products.
__device__ inline void begin_products() {
  if constexpr (kWarpgroups) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Keeps the compiler from reading results before this place.
template <int columns>
__device__ void hold(Result (&d)[columns]) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(d[n].x[i])::"memory");
}

// Ends a batch, which is computed while the threads go on.
__device__ inline void end_batch() {
  if constexpr (kWarpgroups) asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for all batches but the last `others`. These are the results that come to be there.
template <int others, class... Results>
__device__ void await_products(Results&... d) {
  if constexpr (kWarpgroups) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(others) : "memory");
    (hold(d), ...);
  }
}

// Ends the last batch and waits for all.
template <class... Results>
__device__ void end_products(Results&... d) {
  end_batch();
  await_products<0>(d...);
}

#define ORR_4(d, i) "+f"(d[i].x[0]), "+f"(d[i].x[1]), "+f"(d[i].x[2]), "+f"(d[i].x[3])
#define ORR_16(d, i) ORR_4(d, i), ORR_4(d, i + 1), ORR_4(d, i + 2), ORR_4(d, i + 3)
#define ORR_NAMES_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define ORR_NAMES_32 ORR_NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ORR_NAMES_64                                                                             \
  ORR_NAMES_32                                                                                   \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54" \
  ",%55,%56,%57,%58,%59,%60,%61,%62,%63"

// d (+)= a * b', of which both are described and have the 16 summed elements in their rows.
#define ORR_ROWS_PRODUCT(type, n, names, a_name, b_name, adds_name, ...)                 \
  asm volatile("{.reg .pred adds; setp.ne.b32 adds, " adds_name                          \
               ", 0;\n"                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" names \
               "}, " a_name ", " b_name ", adds, 1, 1, 0, 0;}"                           \
               : __VA_ARGS__                                                             \
               : "l"(a), "l"(b), "r"(int(adds)))
// d += a * b; b is described and has the 16 summed elements in its columns.
#define ORR_ADD_PRODUCT(type, n, names, a0, a1, a2, a3, b_name, ...)                             \
  asm volatile(                                                                                  \
      "{.reg .pred adds; setp.eq.b32 adds, 0, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" names "}, {" a0 "," a1 \
      "," a2 "," a3 "}, " b_name ", adds, 1, 1, 1;}"                                             \
      : __VA_ARGS__                                                                              \
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "l"(b))

#define ORR_OF_TYPE(T, type)                                                                       \
  template <>                                                                                      \
  struct Warpgroup<T> {                                                                            \
    __device__ static void rows(Result (&d)[4], uint64_t a, uint64_t b, bool adds) {               \
      ORR_ROWS_PRODUCT(type, "32", ORR_NAMES_16, "%16", "%17", "%18", ORR_16(d, 0));               \
    }                                                                                              \
    __device__ static void rows(Result (&d)[8], uint64_t a, uint64_t b, bool adds) {               \
      ORR_ROWS_PRODUCT(type, "64", ORR_NAMES_32, "%32", "%33", "%34", ORR_16(d, 0), ORR_16(d, 4)); \
    }                                                                                              \
    __device__ static void add(Result (&d)[8], const OperandA& a, uint64_t b) {                    \
      ORR_ADD_PRODUCT(type, "64", ORR_NAMES_32, "%32", "%33", "%34", "%35", "%36", ORR_16(d, 0),   \
                      ORR_16(d, 4));                                                               \
    }                                                                                              \
    __device__ static void add(Result (&d)[16], const OperandA& a, uint64_t b) {                   \
      ORR_ADD_PRODUCT(type, "128", ORR_NAMES_64, "%64", "%65", "%66", "%67", "%68", ORR_16(d, 0),  \
                      ORR_16(d, 4), ORR_16(d, 8), ORR_16(d, 12));                                  \
    }                                                                                              \
  }

// d[n] has 8 columns. rows: d = a * b', or d += a * b' if it adds. add: d += a * b.
template <class T>
struct Warpgroup;
ORR_OF_TYPE(Bf16, "bf16");
ORR_OF_TYPE(F16, "f16");

}  // namespace orr_cuda
#endif
