// SPDX-License-Identifier: Apache-2.0
//
// The sixteen lanes as one AVX-512 register. Included only by simd.h. simd_avx2.h has the same
// functions.
#pragma once

namespace orr_cpu::ORR_ISA {

struct v16f {
  __m512 v;
};
struct v16i {
  __m512i v;
};
struct m16 {
  __mmask16 v;
};

ORR_INLINE v16f splat(float x) { return {_mm512_set1_ps(x)}; }
ORR_INLINE v16i splat_int(int32_t x) { return {_mm512_set1_epi32(x)}; }
ORR_INLINE v16i lane_index() {
  return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}
ORR_INLINE m16 first_lanes(int n) { return {__mmask16((1u << n) - 1)}; }

ORR_INLINE v16f load(const float* p) { return {_mm512_loadu_ps(p)}; }
ORR_INLINE void store(float* p, v16f a) { _mm512_storeu_ps(p, a.v); }
ORR_INLINE void stream(float* p, v16f a) { _mm512_stream_ps(p, a.v); }
// Loads the first n lanes, 0 <= n <= 16; the others are +0, and memory behind them is not read.
ORR_INLINE v16f load(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_lanes(n).v, p)}; }
ORR_INLINE void store(float* p, v16f a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n).v, a.v); }
ORR_INLINE v16i load_int(const void* p) { return {_mm512_loadu_si512(p)}; }
ORR_INLINE void store_int(void* p, v16i a) { _mm512_storeu_si512(p, a.v); }
ORR_INLINE v16i load_u16(const uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p))};
}
ORR_INLINE void store_u16(uint16_t* p, v16i a) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(a.v));
}
// IEEE half <-> float. Rounding is to nearest even; NaN becomes quiet and keeps its first bits.
ORR_INLINE v16f load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p))};
}
ORR_INLINE void store_f16(uint16_t* p, v16f a) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(a.v, 8));
}
ORR_INLINE v16f round_f16(v16f a) { return {_mm512_cvtph_ps(_mm512_cvtps_ph(a.v, 8))}; }

ORR_INLINE v16f operator+(v16f a, v16f b) { return {_mm512_add_ps(a.v, b.v)}; }
ORR_INLINE v16f operator-(v16f a, v16f b) { return {_mm512_sub_ps(a.v, b.v)}; }
ORR_INLINE v16f operator*(v16f a, v16f b) { return {_mm512_mul_ps(a.v, b.v)}; }
ORR_INLINE v16f operator/(v16f a, v16f b) { return {_mm512_div_ps(a.v, b.v)}; }
ORR_INLINE v16f fma(v16f a, v16f b, v16f c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
ORR_INLINE v16f sqrt(v16f a) { return {_mm512_sqrt_ps(a.v)}; }
// As the CPU instruction: the second operand if one is NaN.
ORR_INLINE v16f min(v16f a, v16f b) { return {_mm512_min_ps(a.v, b.v)}; }
ORR_INLINE v16f max(v16f a, v16f b) { return {_mm512_max_ps(a.v, b.v)}; }
ORR_INLINE v16f round_even(v16f a) { return {_mm512_roundscale_ps(a.v, 8)}; }
ORR_INLINE v16f floor(v16f a) { return {_mm512_roundscale_ps(a.v, 9)}; }
ORR_INLINE v16f ceil(v16f a) { return {_mm512_roundscale_ps(a.v, 10)}; }

ORR_INLINE v16i operator+(v16i a, v16i b) { return {_mm512_add_epi32(a.v, b.v)}; }
ORR_INLINE v16i operator-(v16i a, v16i b) { return {_mm512_sub_epi32(a.v, b.v)}; }
ORR_INLINE v16i operator&(v16i a, v16i b) { return {_mm512_and_si512(a.v, b.v)}; }
ORR_INLINE v16i operator|(v16i a, v16i b) { return {_mm512_or_si512(a.v, b.v)}; }
ORR_INLINE v16i operator^(v16i a, v16i b) { return {_mm512_xor_si512(a.v, b.v)}; }
ORR_INLINE v16i shift_left(v16i a, int n) { return {_mm512_slli_epi32(a.v, unsigned(n))}; }
ORR_INLINE v16i shift_right(v16i a, int n) { return {_mm512_srli_epi32(a.v, unsigned(n))}; }
ORR_INLINE v16i shift_right_signed(v16i a, int n) { return {_mm512_srai_epi32(a.v, unsigned(n))}; }
// The low and high words of the unsigned products of lanes.
ORR_INLINE void multiply_wide(v16i a, v16i b, v16i& low, v16i& high) {
  __m512i even = _mm512_mul_epu32(a.v, b.v);
  __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  low = {_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32))};
  high = {_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd)};
}

ORR_INLINE v16i as_int(v16f a) { return {_mm512_castps_si512(a.v)}; }
ORR_INLINE v16f as_float(v16i a) { return {_mm512_castsi512_ps(a.v)}; }
ORR_INLINE v16f to_float(v16i a) { return {_mm512_cvtepi32_ps(a.v)}; }
ORR_INLINE v16i to_int_even(v16f a) { return {_mm512_cvtps_epi32(a.v)}; }

ORR_INLINE m16 operator<(v16f a, v16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
ORR_INLINE m16 operator<=(v16f a, v16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
ORR_INLINE m16 operator>(v16f a, v16f b) { return b < a; }
ORR_INLINE m16 operator>=(v16f a, v16f b) { return b <= a; }
ORR_INLINE m16 operator==(v16f a, v16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
ORR_INLINE m16 operator!=(v16f a, v16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
ORR_INLINE m16 is_nan(v16f a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
ORR_INLINE m16 operator>(v16i a, v16i b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
ORR_INLINE m16 operator==(v16i a, v16i b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
ORR_INLINE m16 operator&(m16 a, m16 b) { return {__mmask16(a.v & b.v)}; }
ORR_INLINE m16 operator|(m16 a, m16 b) { return {__mmask16(a.v | b.v)}; }
ORR_INLINE v16f select(m16 m, v16f a, v16f b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
ORR_INLINE v16i select(m16 m, v16i a, v16i b) { return {_mm512_mask_blend_epi32(m.v, b.v, a.v)}; }
// A mask as one bit per lane, or as lanes of all ones or zeros.
ORR_INLINE uint32_t bits(m16 m) { return m.v; }
ORR_INLINE v16i mask_to_int(m16 m) { return {_mm512_movm_epi32(m.v)}; }
ORR_INLINE m16 int_to_mask(v16i a) { return {_mm512_movepi32_mask(a.v)}; }

ORR_INLINE __m256 low_half(v16f a) { return _mm512_castps512_ps256(a.v); }
ORR_INLINE __m256 high_half(v16f a) { return _mm512_extractf32x8_ps(a.v, 1); }

// Four elements of each of four rows, side by side.
ORR_INLINE v16f beside(__m128 a, __m128 b, __m128 c, __m128 d) {
  __m512 x = _mm512_castps128_ps512(a);
  x = _mm512_insertf32x4(x, b, 1);
  x = _mm512_insertf32x4(x, c, 2);
  return {_mm512_insertf32x4(x, d, 3)};
}
// Of each four lanes, x0 y0 x1 y1 (low) or x2 y2 x3 y3 (high); the same of pairs of lanes.
#define ORR_SHUFFLE(name, unpack)                                                                  \
  ORR_INLINE v16f name(v16f x, v16f y) { return {_mm512_##unpack##_ps(x.v, y.v)}; }                \
  ORR_INLINE v16f name##_pairs(v16f x, v16f y) {                                                   \
    return {_mm512_castpd_ps(_mm512_##unpack##_pd(_mm512_castps_pd(x.v), _mm512_castps_pd(y.v)))}; \
  }
ORR_SHUFFLE(low_of, unpacklo)
ORR_SHUFFLE(high_of, unpackhi)
#undef ORR_SHUFFLE

// The compiler computes x before this, and nothing that follows from it later.
ORR_INLINE void hold(v16f& x) { asm volatile("" : "+v"(x.v)); }

// Eight doubles, and the micro-kernel's tile (matmul_micro.h).
struct v8d {
  __m512d v;
};
ORR_INLINE v8d fill(double x) { return {_mm512_set1_pd(x)}; }
ORR_INLINE v8d load(const double* p) { return {_mm512_loadu_pd(p)}; }
ORR_INLINE void store(double* p, v8d x) { _mm512_storeu_pd(p, x.v); }
ORR_INLINE v8d operator+(v8d x, v8d y) { return {_mm512_add_pd(x.v, y.v)}; }
ORR_INLINE v8d fma(v8d x, v8d y, v8d z) { return {_mm512_fmadd_pd(x.v, y.v, z.v)}; }
enum { kMicroRows = 14, kMicroVectors = 2 };

}  // namespace orr_cpu::ORR_ISA
