// SPDX-License-Identifier: Apache-2.0
//
// What AVX2 and AVX-512 share of the functions that simd_neon.h has, too. Included only by simd.h.
#pragma once

namespace orr_cpu::ORR_ISA {

// What `stream` has stored is in memory before what follows.
ORR_INLINE void streams_are_seen() { _mm_sfence(); }

ORR_INLINE float half_to_float(uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

// The sum of the lanes in the order of ops.h: j + (j+8), then 4, 2, 1.
ORR_INLINE float sum_lanes(v16f a) {
  __m256 h = _mm256_add_ps(low_half(a), high_half(a));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

// Four elements that are neighbours in memory.
ORR_INLINE __m128 quad(const float* p) { return _mm_loadu_ps(p); }
ORR_INLINE __m128 quad_bf16(const uint16_t* p) {
  __m128i wide = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i*)p));
  return _mm_castsi128_ps(_mm_slli_epi32(wide, 16));
}
ORR_INLINE __m128 quad_f16(const uint16_t* p) {
  return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i*)p));
}
// Eight elements, as floats.
ORR_INLINE void copy_octet(float* to, const float* p) { _mm256_storeu_ps(to, _mm256_loadu_ps(p)); }
ORR_INLINE void copy_octet_bf16(float* to, const uint16_t* p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
  _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
}
ORR_INLINE void copy_octet_f16(float* to, const uint16_t* p) {
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)));
}

// The state of the CPU's vector units; with kFlush subnormal operands and results count as 0.
constexpr unsigned kFlush = 0x8040;
ORR_INLINE unsigned float_control() { return _mm_getcsr(); }
ORR_INLINE void set_float_control(unsigned state) { _mm_setcsr(state); }

}  // namespace orr_cpu::ORR_ISA
