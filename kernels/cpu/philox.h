// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10 for sixteen counters at a time (orr_philox of ops.h).
#pragma once

#include "vec.h"

namespace orr_cpu::ORR_ISA {

// Computes four words for each of sixteen counters, whose lower and upper halves are `low` and
// `high`.
ORR_INLINE void philox(uint64_t seed, uint32_t id, uint32_t step, v16i low, v16i high,
                       v16i (&word)[4]) {
  v16i c0 = low, c1 = high, c2 = splat_int(int32_t(id)), c3 = splat_int(int32_t(step));
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  const v16i m0 = splat_int(int32_t(0xD2511F53u)), m1 = splat_int(int32_t(0xCD9E8D57u));
  for (int round = 0; round < 10; ++round) {
    v16i low0, high0, low1, high1;
    multiply_wide(m0, c0, low0, high0);
    multiply_wide(m1, c2, low1, high1);
    c0 = high1 ^ c1 ^ splat_int(int32_t(k0));
    c2 = high0 ^ c3 ^ splat_int(int32_t(k1));
    c1 = low1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}

// The uniform number of each word.
ORR_INLINE v16f uniform(v16i word) {
  return to_float(shift_right(word, 8)) * splat(1.0f / 16777216.0f);
}

}  // namespace orr_cpu::ORR_ISA
