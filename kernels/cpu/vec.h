// SPDX-License-Identifier: Apache-2.0
//
// Element types and their vectors, so that an op is written once: f32, bf16 and f16 work on v16f,
// f64 on v16d, sixteen doubles that the compiler vectorises itself.
#pragma once

#include <math.h>

#include "vmath.h"

namespace orr_cpu::ORR_ISA {

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};
struct v16d {
  double lane[kLanes];
};

// Means "all sixteen" in place of a number of lanes.
struct Full {};

#define ORR_EACH for (int i = 0; i < kLanes; ++i)

template <class T>
struct Element;
template <>
struct Element<float> {
  using V = v16f;
  using S = float;
};
template <>
struct Element<bf16> {
  using V = v16f;
  using S = float;
};
template <>
struct Element<f16> {
  using V = v16f;
  using S = float;
};
template <>
struct Element<double> {
  using V = v16d;
  using S = double;
};
template <class T>
using Vec = typename Element<T>::V;
template <class T>
using Scalar = typename Element<T>::S;

ORR_INLINE v16f load_bf16(const uint16_t* p) { return as_float(shift_left(load_u16(p), 16)); }
ORR_INLINE void store_bf16(uint16_t* p, v16f a) {
  store_u16(p, shift_right(as_int(round_bf16(a)), 16));
}

ORR_INLINE v16f load(const float* p, Full) { return load(p); }
ORR_INLINE void store(float* p, v16f a, Full) { store(p, a); }
ORR_INLINE v16f load(const bf16* p, Full) { return load_bf16(&p->bits); }
ORR_INLINE void store(bf16* p, v16f a, Full) { store_bf16(&p->bits, a); }
ORR_INLINE v16f load(const f16* p, Full) { return load_f16(&p->bits); }
ORR_INLINE void store(f16* p, v16f a, Full) { store_f16(&p->bits, a); }
template <class Half>
ORR_INLINE v16f load(const Half* p, int n) {
  alignas(64) Half t[kLanes] = {};
  for (int i = 0; i < n; ++i) t[i] = p[i];
  return load(t, Full{});
}
template <class Half>
ORR_INLINE void store(Half* p, v16f a, int n) {
  alignas(64) Half t[kLanes];
  store(t, a, Full{});
  for (int i = 0; i < n; ++i) p[i] = t[i];
}
ORR_INLINE v16d load(const double* p, Full) {
  v16d r;
  ORR_EACH r.lane[i] = p[i];
  return r;
}
ORR_INLINE v16d load(const double* p, int n) {
  v16d r;
  ORR_EACH r.lane[i] = i < n ? p[i] : 0.0;
  return r;
}
ORR_INLINE void store(double* p, v16d a, Full) { ORR_EACH p[i] = a.lane[i]; }
ORR_INLINE void store(double* p, v16d a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.lane[i];
}

ORR_INLINE float load_one(const float* p) { return *p; }
ORR_INLINE double load_one(const double* p) { return *p; }
ORR_INLINE float load_one(const bf16* p) {
  uint32_t u = uint32_t(p->bits) << 16;
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
ORR_INLINE float load_one(const f16* p) { return half_to_float(p->bits); }
ORR_INLINE void store_one(float* p, float x) { *p = x; }
ORR_INLINE void store_one(double* p, double x) { *p = x; }
ORR_INLINE void store_one(bf16* p, float x) { store(p, splat(x), 1); }
ORR_INLINE void store_one(f16* p, float x) { store(p, splat(x), 1); }

// The value as it is after being stored as Y.
template <class Y>
ORR_INLINE v16f rounded(v16f x) {
  return x;
}
template <>
ORR_INLINE v16f rounded<bf16>(v16f x) {
  return round_bf16(x);
}
template <>
ORR_INLINE v16f rounded<f16>(v16f x) {
  return round_f16(x);
}
template <class Y>
ORR_INLINE v16d rounded(v16d x) {
  return x;
}
template <class Y>
ORR_INLINE float rounded(float x) {
  if constexpr (sizeof(Y) == sizeof(float)) return x;
  Y y;
  store_one(&y, x);
  return load_one(&y);
}
template <class Y>
ORR_INLINE double rounded(double x) {
  return x;
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

ORR_INLINE v16d splat(double x) {
  v16d r;
  ORR_EACH r.lane[i] = x;
  return r;
}
#define ORR_EACH_OP(op)                          \
  ORR_INLINE v16d operator op(v16d a, v16d b) {  \
    v16d r;                                      \
    ORR_EACH r.lane[i] = a.lane[i] op b.lane[i]; \
    return r;                                    \
  }
ORR_EACH_OP(+)
ORR_EACH_OP(-)
ORR_EACH_OP(*)
ORR_EACH_OP(/)
#undef ORR_EACH_OP
ORR_INLINE v16d exp(v16d a) {
  v16d r;
  ORR_EACH r.lane[i] = ::exp(a.lane[i]);
  return r;
}
ORR_INLINE v16d fma(v16d a, v16d b, v16d c) {
  v16d r;
  ORR_EACH r.lane[i] = __builtin_fma(a.lane[i], b.lane[i], c.lane[i]);
  return r;
}
ORR_INLINE double nan_max(double a, double b) { return b > a || b != b ? b : a; }
ORR_INLINE double nan_min(double a, double b) { return b < a || b != b ? b : a; }
ORR_INLINE float nan_max(float a, float b) { return b > a || b != b ? b : a; }
ORR_INLINE float nan_min(float a, float b) { return b < a || b != b ? b : a; }
ORR_INLINE v16d nan_max(v16d a, v16d b) {
  v16d r;
  ORR_EACH r.lane[i] = nan_max(a.lane[i], b.lane[i]);
  return r;
}
ORR_INLINE v16d nan_min(v16d a, v16d b) {
  v16d r;
  ORR_EACH r.lane[i] = nan_min(a.lane[i], b.lane[i]);
  return r;
}
ORR_INLINE double max_lanes(v16d a) {
  double m = a.lane[0];
  ORR_EACH m = nan_max(m, a.lane[i]);
  return m;
}
ORR_INLINE double min_lanes(v16d a) {
  double m = a.lane[0];
  ORR_EACH m = nan_min(m, a.lane[i]);
  return m;
}
ORR_INLINE double sum_lanes(v16d a) {
  for (int width = 8; width; width /= 2)
    for (int i = 0; i < width; ++i) a.lane[i] = a.lane[i] + a.lane[i + width];
  return a.lane[0];
}

// a, with the lanes from n on replaced by those of `other`.
ORR_INLINE v16f keep_first(v16f a, v16f other, int n) { return select(first_lanes(n), a, other); }
ORR_INLINE v16d keep_first(v16d a, v16d other, int n) {
  v16d r;
  ORR_EACH r.lane[i] = i < n ? a.lane[i] : other.lane[i];
  return r;
}

ORR_INLINE float exp_one(float x) {
  float t[kLanes];
  store(t, exp(splat(x)));
  return t[0];
}
ORR_INLINE double exp_one(double x) { return ::exp(x); }
ORR_INLINE float log_one(float x) {
  float t[kLanes];
  store(t, log(splat(x)));
  return t[0];
}
ORR_INLINE double log_one(double x) { return ::log(x); }
ORR_INLINE float sqrt_one(float x) { return __builtin_sqrtf(x); }
ORR_INLINE double sqrt_one(double x) { return __builtin_sqrt(x); }

}  // namespace orr_cpu::ORR_ISA
