// SPDX-License-Identifier: Apache-2.0
//
// Sixteen virtual float lanes: one zmm register with AVX-512, two ymm with AVX2. Every function
// here gives the same bits on both, so what is written with them does too.
//
// Lane i of a vector is element i in memory. m16 is a mask: one truth value per lane.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#define ORR_INLINE inline __attribute__((always_inline))

#ifdef __AVX512F__
#include "simd_avx512.h"
#else
#include "simd_avx2.h"
#endif

namespace orr_cpu::ORR_ISA {

inline constexpr int kLanes = 16;

ORR_INLINE v16f operator-(v16f a) { return as_float(as_int(a) ^ splat_int(INT32_MIN)); }
ORR_INLINE v16f abs(v16f a) { return as_float(as_int(a) & splat_int(INT32_MAX)); }
ORR_INLINE v16f& operator+=(v16f& a, v16f b) { return a = a + b; }
ORR_INLINE v16f& operator*=(v16f& a, v16f b) { return a = a * b; }

// The larger (smaller) of two, a if they are equal; NaN if either is.
ORR_INLINE v16f nan_max(v16f a, v16f b) { return select(is_nan(b), b, max(b, a)); }
ORR_INLINE v16f nan_min(v16f a, v16f b) { return select(is_nan(b), b, min(b, a)); }

// bfloat16 <-> float. Rounding is to nearest even; NaN stays NaN.
ORR_INLINE v16f round_bf16(v16f a) {
  v16i bits = as_int(a);
  v16i up = bits + splat_int(0x7fff) + (shift_right(bits, 16) & splat_int(1));
  v16i nan = bits | splat_int(0x00400000);
  return as_float(select(is_nan(a), nan, up) & splat_int(int32_t(0xffff0000)));
}
ORR_INLINE v16f load_bf16(const uint16_t* p) { return as_float(shift_left(load_u16(p), 16)); }
ORR_INLINE void store_bf16(uint16_t* p, v16f a) {
  store_u16(p, shift_right(as_int(round_bf16(a)), 16));
}

// The sum of the lanes in the order of ops.h: j + (j+8), then 4, 2, 1.
ORR_INLINE float sum_lanes(v16f a) {
  __m256 h = _mm256_add_ps(low_half(a), high_half(a));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

// The largest (smallest) lane; NaN if any lane is.
ORR_INLINE float max_lanes(v16f a) {
  alignas(64) float t[kLanes];
  store(t, a);
  float m = t[0];
  for (int i = 1; i < kLanes; ++i) m = t[i] > m || t[i] != t[i] ? t[i] : m;
  return m;
}
ORR_INLINE float min_lanes(v16f a) {
  alignas(64) float t[kLanes];
  store(t, a);
  float m = t[0];
  for (int i = 1; i < kLanes; ++i) m = t[i] < m || t[i] != t[i] ? t[i] : m;
  return m;
}

}  // namespace orr_cpu::ORR_ISA
