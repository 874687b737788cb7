// SPDX-License-Identifier: Apache-2.0
//
// Vectors of sixteen floats: one zmm register with AVX-512, two ymm registers with AVX2, four
// registers of NEON. Every function here gives the same bits with each, and so does all code that
// uses only these functions.
//
// Lane i of a vector is element i in memory. m16 is a mask: one truth value per lane.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <stdint.h>

#define ORR_INLINE inline __attribute__((always_inline))

#if defined ORR_TRACED
#include "simd_traced.h"
#elif defined __aarch64__
#include "simd_neon.h"
#elif defined __AVX512F__
#include "simd_avx512.h"
#include "simd_x86.h"
#else
#include "simd_avx2.h"
#include "simd_x86.h"
#endif

namespace orr_cpu::ORR_ISA {

inline constexpr int kLanes = 16;

ORR_INLINE v16f operator-(v16f a) { return as_float(as_int(a) ^ splat_int(INT32_MIN)); }
ORR_INLINE v16f abs(v16f a) { return as_float(as_int(a) & splat_int(INT32_MAX)); }
ORR_INLINE v16f& operator+=(v16f& a, v16f b) { return a = a + b; }
ORR_INLINE v16f& operator*=(v16f& a, v16f b) { return a = a * b; }

// The larger (smaller) of two; a if they are equal; NaN if one is NaN.
ORR_INLINE v16f nan_max(v16f a, v16f b) { return select(is_nan(b), b, max(b, a)); }
ORR_INLINE v16f nan_min(v16f a, v16f b) { return select(is_nan(b), b, min(b, a)); }

// Rounds to nearest even; NaN stays NaN.
ORR_INLINE v16f round_bf16(v16f a) {
  v16i bits = as_int(a);
  v16i up = bits + splat_int(0x7fff) + (shift_right(bits, 16) & splat_int(1));
  v16i nan = bits | splat_int(0x00400000);
  return as_float(select(is_nan(a), nan, up) & splat_int(int32_t(0xffff0000)));
}

}  // namespace orr_cpu::ORR_ISA
