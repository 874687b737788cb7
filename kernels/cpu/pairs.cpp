// SPDX-License-Identifier: Apache-2.0
//
// Whether products of pairs of bf16 are faster by one instruction, vdpbf16ps of AVX512-BF16, or by
// two fused multiply-adds of f32, whose bits are the same (ops.h, matmul). AMD's CPUs issue both
// instructions at one rate; on some of Intel's the former has a quarter of it. So it is measured.
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>

#include "kernel.h"

// The tests build a plugin that never uses the instruction.
#ifndef ORR_CPU_PAIRS
#define ORR_CPU_PAIRS true
#endif

namespace orr_cpu {
namespace {

// Enough independent sums to hide the latency of either instruction.
#define ORR_ON_EACH_SUM(op)                                            \
  op " %%zmm14, %%zmm15, %%zmm0\n" op " %%zmm14, %%zmm15, %%zmm1\n" op \
     " %%zmm14, %%zmm15, %%zmm2\n" op " %%zmm14, %%zmm15, %%zmm3\n" op \
     " %%zmm14, %%zmm15, %%zmm4\n" op " %%zmm14, %%zmm15, %%zmm5\n" op \
     " %%zmm14, %%zmm15, %%zmm6\n" op " %%zmm14, %%zmm15, %%zmm7\n" op \
     " %%zmm14, %%zmm15, %%zmm8\n" op " %%zmm14, %%zmm15, %%zmm9\n" op \
     " %%zmm14, %%zmm15, %%zmm10\n" op " %%zmm14, %%zmm15, %%zmm11\n"

// Ticks of the time stamp counter for 1,000 rounds of an instruction on all sums, operands zero.
#define ORR_TICKS_OF(name, op)                                                                     \
  __attribute__((target("avx512f"))) uint64_t name() {                                             \
    int64_t rounds = 1000;                                                                         \
    const uint64_t begin = __rdtsc();                                                              \
    asm volatile(                                                                                  \
        "vpxord %%zmm14, %%zmm14, %%zmm14\n vpxord %%zmm15, %%zmm15, %%zmm15\n" ORR_ON_EACH_SUM(   \
            "vpxord") "1:\n" ORR_ON_EACH_SUM(op) "dec %0\n jnz 1b\n"                               \
        : "+r"(rounds)                                                                             \
        :                                                                                          \
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
          "xmm11", "xmm14", "xmm15", "cc");                                                        \
    return __rdtsc() - begin;                                                                      \
  }

ORR_TICKS_OF(ticks_of_pairs, "vdpbf16ps")
ORR_TICKS_OF(ticks_of_fused, "vfmadd231ps")

// The best of several turns each, some 100 us in all: the first wake the CPU's wide units.
bool measure() {
  uint64_t pairs = UINT64_MAX, fused = UINT64_MAX;
  for (int turn = 0; turn < 8; ++turn) {
    pairs = std::min(pairs, ticks_of_pairs());
    fused = std::min(fused, ticks_of_fused());
  }
  return pairs < 2 * fused;
}

}  // namespace

bool pairs_are_fast() {
  static const bool fast = ORR_CPU_PAIRS && __builtin_cpu_supports("avx512bf16") && measure();
  return fast;
}

}  // namespace orr_cpu
