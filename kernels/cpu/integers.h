// SPDX-License-Identifier: Apache-2.0
//
// Reads indices and 0-d integers, which may be i32 or i64, and checks their range.
#pragma once

#include "simd.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {

struct Integers {
  Integers(const orr_op& op, int input) : wide(op.in[input].dtype == ORR_I64) {}
  ORR_INLINE int64_t operator()(const void* p, int64_t i) const {
    return wide ? ((const int64_t*)p)[i] : ((const int32_t*)p)[i];
  }
  bool wide;
};

// Throws for the first of n indices outside [0, limit).
inline void check_indices(const char* kind, const Integers& get, const void* index, int64_t n,
                          int64_t limit) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t v = get(index, i);
    if (v >= 0 && v < limit) continue;
    fail(ORR_INVALID, "%s: index %lld in row %lld is outside the %lld rows of the table (0..%lld)",
         kind, (long long)v, (long long)i, (long long)limit, (long long)(limit - 1));
  }
}

}  // namespace orr_cpu::ORR_ISA
