// SPDX-License-Identifier: Apache-2.0
//
// The sixteen lanes as two AVX2 registers. Included only by simd.h. simd_avx512.h has the same
// functions, with comments.
#pragma once

namespace orr_cpu::ORR_ISA {

struct v16f {
  __m256 a, b;
};
struct v16i {
  __m256i a, b;
};
struct m16 {
  __m256i a, b;
};

ORR_INLINE v16f splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
ORR_INLINE v16i splat_int(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
ORR_INLINE v16i lane_index() {
  return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
          _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
}
ORR_INLINE m16 first_lanes(int n) {
  __m256i limit = _mm256_set1_epi32(n);
  return {_mm256_cmpgt_epi32(limit, lane_index().a), _mm256_cmpgt_epi32(limit, lane_index().b)};
}

ORR_INLINE v16f load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
ORR_INLINE void store(float* p, v16f x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
ORR_INLINE void stream(float* p, v16f x) {
  _mm256_stream_ps(p, x.a);
  _mm256_stream_ps(p + 8, x.b);
}
ORR_INLINE v16f load(const float* p, int n) {
  m16 m = first_lanes(n);
  return {_mm256_maskload_ps(p, m.a), _mm256_maskload_ps(p + 8, m.b)};
}
ORR_INLINE void store(float* p, v16f x, int n) {
  m16 m = first_lanes(n);
  _mm256_maskstore_ps(p, m.a, x.a);
  _mm256_maskstore_ps(p + 8, m.b, x.b);
}
ORR_INLINE v16i load_int(const void* p) {
  const __m256i* q = (const __m256i*)p;
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
ORR_INLINE void store_int(void* p, v16i x) {
  __m256i* q = (__m256i*)p;
  _mm256_storeu_si256(q, x.a);
  _mm256_storeu_si256(q + 1, x.b);
}
ORR_INLINE v16i load_u16(const uint16_t* p) {
  const __m128i* q = (const __m128i*)p;
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(q)), _mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1))};
}
ORR_INLINE void store_u16(uint16_t* p, v16i x) {
  __m256i packed = _mm256_packus_epi32(x.a, x.b);
  _mm256_storeu_si256((__m256i*)p, _mm256_permute4x64_epi64(packed, 0xd8));
}

ORR_INLINE v16f load_f16(const uint16_t* p) {
  const __m128i* q = (const __m128i*)p;
  return {_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
}
ORR_INLINE void store_f16(uint16_t* p, v16f x) {
  __m128i* q = (__m128i*)p;
  _mm_storeu_si128(q, _mm256_cvtps_ph(x.a, 8));
  _mm_storeu_si128(q + 1, _mm256_cvtps_ph(x.b, 8));
}
ORR_INLINE v16f round_f16(v16f x) {
  return {_mm256_cvtph_ps(_mm256_cvtps_ph(x.a, 8)), _mm256_cvtph_ps(_mm256_cvtps_ph(x.b, 8))};
}

#define ORR_BOTH(name, type, op) \
  ORR_INLINE type name(type x, type y) { return {op(x.a, y.a), op(x.b, y.b)}; }
ORR_BOTH(operator+, v16f, _mm256_add_ps)
ORR_BOTH(operator-, v16f, _mm256_sub_ps)
ORR_BOTH(operator*, v16f, _mm256_mul_ps)
ORR_BOTH(operator/, v16f, _mm256_div_ps)
ORR_BOTH(min, v16f, _mm256_min_ps)
ORR_BOTH(max, v16f, _mm256_max_ps)
ORR_BOTH(operator+, v16i, _mm256_add_epi32)
ORR_BOTH(operator-, v16i, _mm256_sub_epi32)
ORR_BOTH(operator&, v16i, _mm256_and_si256)
ORR_BOTH(operator|, v16i, _mm256_or_si256)
ORR_BOTH(operator^, v16i, _mm256_xor_si256)
ORR_BOTH(operator&, m16, _mm256_and_si256)
ORR_BOTH(operator|, m16, _mm256_or_si256)
#undef ORR_BOTH

ORR_INLINE v16f fma(v16f x, v16f y, v16f z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
ORR_INLINE v16f sqrt(v16f x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
ORR_INLINE v16f round_even(v16f x) { return {_mm256_round_ps(x.a, 8), _mm256_round_ps(x.b, 8)}; }
ORR_INLINE v16f floor(v16f x) { return {_mm256_round_ps(x.a, 9), _mm256_round_ps(x.b, 9)}; }
ORR_INLINE v16f ceil(v16f x) { return {_mm256_round_ps(x.a, 10), _mm256_round_ps(x.b, 10)}; }

ORR_INLINE v16i shift_left(v16i x, int n) {
  return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
ORR_INLINE v16i shift_right(v16i x, int n) {
  return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)};
}
ORR_INLINE v16i shift_right_signed(v16i x, int n) {
  return {_mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n)};
}
ORR_INLINE void multiply_wide(__m256i x, __m256i y, __m256i& low, __m256i& high) {
  __m256i even = _mm256_mul_epu32(x, y);
  __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32));
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
ORR_INLINE void multiply_wide(v16i x, v16i y, v16i& low, v16i& high) {
  multiply_wide(x.a, y.a, low.a, high.a);
  multiply_wide(x.b, y.b, low.b, high.b);
}

ORR_INLINE v16i as_int(v16f x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
ORR_INLINE v16f as_float(v16i x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
ORR_INLINE v16f to_float(v16i x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
ORR_INLINE v16i to_int_even(v16f x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }

template <int predicate>
ORR_INLINE m16 compare(v16f x, v16f y) {
  return {_mm256_castps_si256(_mm256_cmp_ps(x.a, y.a, predicate)),
          _mm256_castps_si256(_mm256_cmp_ps(x.b, y.b, predicate))};
}
ORR_INLINE m16 operator<(v16f x, v16f y) { return compare<_CMP_LT_OQ>(x, y); }
ORR_INLINE m16 operator<=(v16f x, v16f y) { return compare<_CMP_LE_OQ>(x, y); }
ORR_INLINE m16 operator>(v16f x, v16f y) { return y < x; }
ORR_INLINE m16 operator>=(v16f x, v16f y) { return y <= x; }
ORR_INLINE m16 operator==(v16f x, v16f y) { return compare<_CMP_EQ_OQ>(x, y); }
ORR_INLINE m16 operator!=(v16f x, v16f y) { return compare<_CMP_NEQ_UQ>(x, y); }
ORR_INLINE m16 is_nan(v16f x) { return compare<_CMP_UNORD_Q>(x, x); }
ORR_INLINE m16 operator>(v16i x, v16i y) {
  return {_mm256_cmpgt_epi32(x.a, y.a), _mm256_cmpgt_epi32(x.b, y.b)};
}
ORR_INLINE m16 operator==(v16i x, v16i y) {
  return {_mm256_cmpeq_epi32(x.a, y.a), _mm256_cmpeq_epi32(x.b, y.b)};
}
ORR_INLINE v16f select(m16 m, v16f x, v16f y) {
  return {_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(m.a)),
          _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(m.b))};
}
ORR_INLINE v16i select(m16 m, v16i x, v16i y) {
  return {_mm256_blendv_epi8(y.a, x.a, m.a), _mm256_blendv_epi8(y.b, x.b, m.b)};
}
ORR_INLINE uint32_t bits(m16 m) {
  return uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(m.a))) |
         uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(m.b))) << 8;
}
ORR_INLINE v16i mask_to_int(m16 m) { return {m.a, m.b}; }
ORR_INLINE m16 int_to_mask(v16i x) { return {x.a, x.b}; }

ORR_INLINE __m256 low_half(v16f x) { return x.a; }
ORR_INLINE __m256 high_half(v16f x) { return x.b; }

ORR_INLINE v16f beside(__m128 a, __m128 b, __m128 c, __m128 d) {
  return {_mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1),
          _mm256_insertf128_ps(_mm256_castps128_ps256(c), d, 1)};
}
#define ORR_SHUFFLE(name, unpack)                                                                  \
  ORR_INLINE v16f name(v16f x, v16f y) {                                                           \
    return {_mm256_##unpack##_ps(x.a, y.a), _mm256_##unpack##_ps(x.b, y.b)};                       \
  }                                                                                                \
  ORR_INLINE v16f name##_pairs(v16f x, v16f y) {                                                   \
    return {_mm256_castpd_ps(_mm256_##unpack##_pd(_mm256_castps_pd(x.a), _mm256_castps_pd(y.a))),  \
            _mm256_castpd_ps(_mm256_##unpack##_pd(_mm256_castps_pd(x.b), _mm256_castps_pd(y.b)))}; \
  }
ORR_SHUFFLE(low_of, unpacklo)
ORR_SHUFFLE(high_of, unpackhi)
#undef ORR_SHUFFLE

ORR_INLINE void hold(v16f& x) { asm volatile("" : "+x"(x.a), "+x"(x.b)); }

// Eight doubles, and the micro-kernel's tile (matmul_micro.h).
struct v8d {
  __m256d a, b;
};
ORR_INLINE v8d fill(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
ORR_INLINE v8d load(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
ORR_INLINE void store(double* p, v8d x) {
  _mm256_storeu_pd(p, x.a);
  _mm256_storeu_pd(p + 4, x.b);
}
ORR_INLINE v8d operator+(v8d x, v8d y) {
  return {_mm256_add_pd(x.a, y.a), _mm256_add_pd(x.b, y.b)};
}
ORR_INLINE v8d fma(v8d x, v8d y, v8d z) {
  return {_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b)};
}
enum { kMicroRows = 6, kMicroVectors = 1 };

}  // namespace orr_cpu::ORR_ISA
