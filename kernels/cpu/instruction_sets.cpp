// SPDX-License-Identifier: Apache-2.0
//
// See instruction_sets.h.
#include "instruction_sets.h"

#include <initializer_list>

namespace orr_cpu {
namespace {

bool cpu_has(Isa isa) {
#ifdef __x86_64__
  if (isa == kNeon || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c"))
    return false;
  return isa == kAvx2 || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#else
  return isa == kNeon;  // every AArch64 has it
#endif
}

}  // namespace

const char* name_of(Isa isa) {
  const char* const names[kIsas] = {"avx2", "avx512", "neon"};
  return names[isa];
}

bool was_built(Isa isa) { return op_table[0].make[isa]; }

int best_isa(bool wide, const char*& reason) {
  for (const Isa isa : {kNeon, kAvx512, kAvx2})
    if (was_built(isa) && cpu_has(isa) && (wide || isa != kAvx512)) return isa;
  reason = was_built(kAvx2) ? "needs AVX2, FMA and F16C"
                            : "was built for AVX-512 alone, which this CPU has not: configure the "
                              "build with -Dcpu_isas=avx2,avx512";
  return -1;
}

}  // namespace orr_cpu
