// SPDX-License-Identifier: Apache-2.0
//
// The sixteen lanes as four NEON registers of AArch64. Included only by simd.h. simd_avx512.h has
// the same functions, with comments.
#pragma once

#include <arm_neon.h>

namespace orr_cpu::ORR_ISA {

struct v16f {
  float32x4_t q[4];
};
struct v16i {
  int32x4_t q[4];
};
struct m16 {
  uint32x4_t q[4];
};

// f of the four registers of each operand.
template <class To, class F>
ORR_INLINE To each(F f) {
  return {f(0), f(1), f(2), f(3)};
}
#define ORR_EACH_QUARTER(to, of_i) \
  each<to>([&](int i) __attribute__((always_inline)) { return of_i; })

ORR_INLINE v16f splat(float x) { return ORR_EACH_QUARTER(v16f, (void(i), vdupq_n_f32(x))); }
ORR_INLINE v16i splat_int(int32_t x) { return ORR_EACH_QUARTER(v16i, (void(i), vdupq_n_s32(x))); }
ORR_INLINE v16i lane_index() {
  return ORR_EACH_QUARTER(v16i, (int32x4_t{4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}));
}
ORR_INLINE m16 first_lanes(int n) {
  const v16i lanes = lane_index();
  return ORR_EACH_QUARTER(m16, vcltq_s32(lanes.q[i], vdupq_n_s32(n)));
}

ORR_INLINE v16f load(const float* p) { return ORR_EACH_QUARTER(v16f, vld1q_f32(p + 4 * i)); }
ORR_INLINE void store(float* p, v16f x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.q[i]);
}
ORR_INLINE void stream(float* p, v16f x) { store(p, x); }
ORR_INLINE void streams_are_seen() {}
ORR_INLINE v16f load(const float* p, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
ORR_INLINE void store(float* p, v16f x, int n) {
  float lanes[16];
  store(lanes, x);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}
ORR_INLINE v16i load_int(const void* p) {
  return ORR_EACH_QUARTER(v16i, vld1q_s32((const int32_t*)p + 4 * i));
}
ORR_INLINE void store_int(void* p, v16i x) {
  for (int i = 0; i < 4; ++i) vst1q_s32((int32_t*)p + 4 * i, x.q[i]);
}
ORR_INLINE v16i load_u16(const uint16_t* p) {
  return ORR_EACH_QUARTER(v16i, vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p + 4 * i))));
}
ORR_INLINE void store_u16(uint16_t* p, v16i x) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vmovn_u32(vreinterpretq_u32_s32(x.q[i])));
}

ORR_INLINE float32x4_t quad_f16(const uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
ORR_INLINE v16f load_f16(const uint16_t* p) { return ORR_EACH_QUARTER(v16f, quad_f16(p + 4 * i)); }
ORR_INLINE void store_f16(uint16_t* p, v16f x) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.q[i])));
}
ORR_INLINE v16f round_f16(v16f x) {
  return ORR_EACH_QUARTER(v16f, vcvt_f32_f16(vcvt_f16_f32(x.q[i])));
}
ORR_INLINE float half_to_float(uint16_t bits) {
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))), 0);
}

#define ORR_TWO(name, type, to, op) \
  ORR_INLINE to name(type x, type y) { return ORR_EACH_QUARTER(to, op(x.q[i], y.q[i])); }
ORR_TWO(operator+, v16f, v16f, vaddq_f32)
ORR_TWO(operator-, v16f, v16f, vsubq_f32)
ORR_TWO(operator*, v16f, v16f, vmulq_f32)
ORR_TWO(operator/, v16f, v16f, vdivq_f32)
ORR_TWO(operator+, v16i, v16i, vaddq_s32)
ORR_TWO(operator-, v16i, v16i, vsubq_s32)
ORR_TWO(operator&, v16i, v16i, vandq_s32)
ORR_TWO(operator|, v16i, v16i, vorrq_s32)
ORR_TWO(operator^, v16i, v16i, veorq_s32)
ORR_TWO(operator&, m16, m16, vandq_u32)
ORR_TWO(operator|, m16, m16, vorrq_u32)
ORR_TWO(operator<, v16f, m16, vcltq_f32)
ORR_TWO(operator<=, v16f, m16, vcleq_f32)
ORR_TWO(operator==, v16f, m16, vceqq_f32)
ORR_TWO(operator>, v16i, m16, vcgtq_s32)
ORR_TWO(operator==, v16i, m16, vceqq_s32)
#undef ORR_TWO
ORR_INLINE m16 operator>(v16f x, v16f y) { return y < x; }
ORR_INLINE m16 operator>=(v16f x, v16f y) { return y <= x; }
ORR_INLINE m16 operator!=(v16f x, v16f y) {
  return ORR_EACH_QUARTER(m16, vmvnq_u32(vceqq_f32(x.q[i], y.q[i])));
}
ORR_INLINE m16 is_nan(v16f x) { return x != x; }
ORR_INLINE v16f select(m16 m, v16f x, v16f y) {
  return ORR_EACH_QUARTER(v16f, vbslq_f32(m.q[i], x.q[i], y.q[i]));
}
ORR_INLINE v16i select(m16 m, v16i x, v16i y) {
  return ORR_EACH_QUARTER(v16i, vbslq_s32(m.q[i], x.q[i], y.q[i]));
}
ORR_INLINE v16f min(v16f x, v16f y) { return select(x < y, x, y); }
ORR_INLINE v16f max(v16f x, v16f y) { return select(x > y, x, y); }

ORR_INLINE v16f fma(v16f x, v16f y, v16f z) {
  return ORR_EACH_QUARTER(v16f, vfmaq_f32(z.q[i], x.q[i], y.q[i]));
}
ORR_INLINE v16f sqrt(v16f x) { return ORR_EACH_QUARTER(v16f, vsqrtq_f32(x.q[i])); }
ORR_INLINE v16f round_even(v16f x) { return ORR_EACH_QUARTER(v16f, vrndnq_f32(x.q[i])); }
ORR_INLINE v16f floor(v16f x) { return ORR_EACH_QUARTER(v16f, vrndmq_f32(x.q[i])); }
ORR_INLINE v16f ceil(v16f x) { return ORR_EACH_QUARTER(v16f, vrndpq_f32(x.q[i])); }

ORR_INLINE v16i shift_left(v16i x, int n) {
  return ORR_EACH_QUARTER(v16i, vshlq_s32(x.q[i], vdupq_n_s32(n)));
}
ORR_INLINE v16i shift_right(v16i x, int n) {
  return ORR_EACH_QUARTER(
      v16i, vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x.q[i]), vdupq_n_s32(-n))));
}
ORR_INLINE v16i shift_right_signed(v16i x, int n) {
  return ORR_EACH_QUARTER(v16i, vshlq_s32(x.q[i], vdupq_n_s32(-n)));
}
ORR_INLINE void multiply_wide(v16i x, v16i y, v16i& low, v16i& high) {
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t a = vreinterpretq_u32_s32(x.q[i]), b = vreinterpretq_u32_s32(y.q[i]);
    const uint32x4_t first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), vget_low_u32(b)));
    const uint32x4_t second = vreinterpretq_u32_u64(vmull_high_u32(a, b));
    low.q[i] = vreinterpretq_s32_u32(vuzp1q_u32(first, second));
    high.q[i] = vreinterpretq_s32_u32(vuzp2q_u32(first, second));
  }
}

ORR_INLINE v16i as_int(v16f x) { return ORR_EACH_QUARTER(v16i, vreinterpretq_s32_f32(x.q[i])); }
ORR_INLINE v16f as_float(v16i x) { return ORR_EACH_QUARTER(v16f, vreinterpretq_f32_s32(x.q[i])); }
ORR_INLINE v16f to_float(v16i x) { return ORR_EACH_QUARTER(v16f, vcvtq_f32_s32(x.q[i])); }
// What does not fit, and NaN, is the least number, as on x86.
ORR_INLINE v16i to_int_even(v16f x) {
  const v16i near = ORR_EACH_QUARTER(v16i, vcvtnq_s32_f32(x.q[i]));
  return select((splat(-0x1p31f) <= x) & (x < splat(0x1p31f)), near, splat_int(INT32_MIN));
}

ORR_INLINE uint32_t bits(m16 m) {
  const uint32x4_t place = {1, 2, 4, 8};
  uint32_t all = 0;
  for (int i = 0; i < 4; ++i) all |= vaddvq_u32(vandq_u32(m.q[i], place)) << 4 * i;
  return all;
}
ORR_INLINE v16i mask_to_int(m16 m) { return ORR_EACH_QUARTER(v16i, vreinterpretq_s32_u32(m.q[i])); }
ORR_INLINE m16 int_to_mask(v16i x) { return ORR_EACH_QUARTER(m16, vreinterpretq_u32_s32(x.q[i])); }

ORR_INLINE float sum_lanes(v16f x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.q[0], x.q[2]), vaddq_f32(x.q[1], x.q[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

ORR_INLINE v16f beside(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return {a, b, c, d};
}
ORR_INLINE float32x4_t quad(const float* p) { return vld1q_f32(p); }
ORR_INLINE float32x4_t quad_bf16(const uint16_t* p) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16));
}
ORR_INLINE void copy_octet(float* to, const float* p) {
  vst1q_f32(to, quad(p)), vst1q_f32(to + 4, quad(p + 4));
}
ORR_INLINE void copy_octet_bf16(float* to, const uint16_t* p) {
  vst1q_f32(to, quad_bf16(p)), vst1q_f32(to + 4, quad_bf16(p + 4));
}
ORR_INLINE void copy_octet_f16(float* to, const uint16_t* p) {
  vst1q_f32(to, quad_f16(p)), vst1q_f32(to + 4, quad_f16(p + 4));
}
#define ORR_TWO(name, op)                                                                          \
  ORR_INLINE v16f name(v16f x, v16f y) {                                                           \
    return ORR_EACH_QUARTER(v16f, op##_f32(x.q[i], y.q[i]));                                       \
  }                                                                                                \
  ORR_INLINE v16f name##_pairs(v16f x, v16f y) {                                                   \
    return ORR_EACH_QUARTER(v16f, vreinterpretq_f32_f64(op##_f64(vreinterpretq_f64_f32(x.q[i]),    \
                                                                 vreinterpretq_f64_f32(y.q[i])))); \
  }
ORR_TWO(low_of, vzip1q)
ORR_TWO(high_of, vzip2q)
#undef ORR_TWO

struct v8d {
  float64x2_t q[4];
};
ORR_INLINE v8d fill(double x) { return ORR_EACH_QUARTER(v8d, (void(i), vdupq_n_f64(x))); }
ORR_INLINE v8d load(const double* p) { return ORR_EACH_QUARTER(v8d, vld1q_f64(p + 2 * i)); }
ORR_INLINE void store(double* p, v8d x) {
  for (int i = 0; i < 4; ++i) vst1q_f64(p + 2 * i, x.q[i]);
}
ORR_INLINE v8d operator+(v8d x, v8d y) { return ORR_EACH_QUARTER(v8d, vaddq_f64(x.q[i], y.q[i])); }
ORR_INLINE v8d fma(v8d x, v8d y, v8d z) {
  return ORR_EACH_QUARTER(v8d, vfmaq_f64(z.q[i], x.q[i], y.q[i]));
}
enum { kMicroRows = 6, kMicroVectors = 1 };

// The control register of the thread's floating-point unit; with kFlush, subnormal operands and
// results count as 0.
constexpr uint64_t kFlush = 1 << 24;
ORR_INLINE uint64_t float_control() {
  uint64_t state;
  asm volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
ORR_INLINE void set_float_control(uint64_t state) { asm volatile("msr fpcr, %0" ::"r"(state)); }
// The compiler computes x before this, and nothing of it later.
ORR_INLINE void hold(v16f& x) {
  asm volatile("" : "+w"(x.q[0]), "+w"(x.q[1]), "+w"(x.q[2]), "+w"(x.q[3]));
}

#undef ORR_EACH_QUARTER

}  // namespace orr_cpu::ORR_ISA
