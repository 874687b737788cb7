// SPDX-License-Identifier: Apache-2.0
//
// Tensor cores, as used by a warp for 16-bit elements: products of 16x16 by 16x8 with f32 sums,
// loading operands from shared memory, and asynchronous copies to it. Of a 16x8 result, lane l has
// the rows l/4 (x[0], x[1]) and l/4 + 8 (x[2], x[3]) at the columns 2*(l%4) and 2*(l%4) + 1.
// Operands are laid out in the same way, with two elements in a word.
#pragma once

#include "kernel.h"

namespace orr_cuda {

struct OperandA {
  uint32_t x[4];  // rows 0-7 and 8-15 of columns 0-7, the same of columns 8-15
};
struct OperandB {
  uint32_t x[2];  // rows 0-7, rows 8-15
};
struct Result {
  float x[4];
};

#ifdef ORR_TENSOR_CORE  // the tests' stand-in
#define ORR_CONSTEXPR   // which does both ways
}  // namespace orr_cuda
#include ORR_TENSOR_CORE
namespace orr_cuda {
#else
#define ORR_CONSTEXPR constexpr

#define ORR_LOAD(how)                                                                 \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0,%1,%2,%3}, [%4];" \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                       \
               : "r"(unsigned(__cvta_generic_to_shared(row)))                         \
               : "memory")

// Four 8x8 matrices; lane l gives the address of row l%8 of matrix l/8.
__device__ inline void load_matrices(uint32_t* x, const void* row) { ORR_LOAD(""); }
// The same, each transposed.
__device__ inline void load_transposed(uint32_t* x, const void* row) { ORR_LOAD(".trans"); }
#undef ORR_LOAD

#define ORR_MULTIPLY(type)                                              \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type   \
               ".f32 {%0,%1,%2,%3}, "                                   \
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                 \
               : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3]) \
               : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]))

// c += a * b
template <class T>
__device__ void multiply(Result& c, const OperandA& a, const OperandB& b);
template <>
__device__ inline void multiply<Bf16>(Result& c, const OperandA& a, const OperandB& b) {
  ORR_MULTIPLY("bf16");
}
template <>
__device__ inline void multiply<F16>(Result& c, const OperandA& a, const OperandB& b) {
  ORR_MULTIPLY("f16");
}
#undef ORR_MULTIPLY

// Of f32, as TF32: 16x8 by 8x8, with one element in a word.
__device__ inline uint32_t as_tf32(uint32_t x) {
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x) : "f"(__uint_as_float(x)));
  return x;
}
template <>
__device__ inline void multiply<float>(Result& c, const OperandA& a, const OperandB& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
      : "r"(as_tf32(a.x[0])), "r"(as_tf32(a.x[1])), "r"(as_tf32(a.x[2])), "r"(as_tf32(a.x[3])),
        "r"(as_tf32(b.x[0])), "r"(as_tf32(b.x[1])));
}

// Copies 16 bytes from global to shared memory, or zeros. REQUIRES: both are aligned to 16 bytes.
__device__ inline void copy_async(void* to, const void* from, bool present) {
  const unsigned at = unsigned(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
// Ends a batch of this thread's copies.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all batches of this thread but the last `others`.
template <int others>
__device__ void wait_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(others) : "memory");
}
// Waits for the copies of this thread.
__device__ inline void wait_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif

// Columns 16*j .. 16*j + 15 of 16 rows of results as the left operand of a next product.
template <class T>
__device__ OperandA as_operand(const Result* c, int j) {
  const Result &lo = c[2 * j], &hi = c[2 * j + 1];
  return {{pack(T(), lo.x[0], lo.x[1]), pack(T(), lo.x[2], lo.x[3]), pack(T(), hi.x[0], hi.x[1]),
           pack(T(), hi.x[2], hi.x[3])}};
}

}  // namespace orr_cuda
