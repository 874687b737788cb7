// SPDX-License-Identifier: Apache-2.0
//
// Element types: how each is read into its accumulator and rounded back, and the dispatch from an
// ABI dtype to a C++ type. Values of 16 and 8 bits live as bit patterns; arithmetic is never done
// in them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <orrery/sdk/float8.hpp>
#include <orrery/sdk/op_checks.hpp>
#include <type_traits>

namespace reference {

using namespace orr;  // op_checks.hpp

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

// The accumulator of each element type: f32 for f32 and shorter reals, f64 for f64, i64 for
// integers.
template <class T>
struct AccumulatorOf {
  using type = int64_t;
};
template <>
struct AccumulatorOf<float> {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <>
struct AccumulatorOf<Bf16> {
  using type = float;
};
template <>
struct AccumulatorOf<F16> {
  using type = float;
};
template <>
struct AccumulatorOf<F8E4M3> {
  using type = float;
};
template <>
struct AccumulatorOf<F8E5M2> {
  using type = float;
};
template <class T>
using Acc = typename AccumulatorOf<T>::type;

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// To nearest even; a NaN stays one.
inline uint16_t f32_to_bf16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  if (x != x) return uint16_t((u >> 16) | 0x40);
  return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

inline float f16_to_f32(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 31,
           mantissa = bits & 1023;
  if (exponent == 31 && mantissa) mantissa |= 512;  // a NaN is quiet
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) return std::copysign(float(mantissa) * 0x1p-24f, std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// To nearest even, with subnormals; what is too large becomes infinite, a NaN keeps its first bits.
inline uint16_t f32_to_f16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x), sign = (u >> 16) & 0x8000, magnitude = u & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00 | ((magnitude >> 13) & 1023));
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000)  // below 2^-14: a multiple of 2^-24
    return uint16_t(sign | uint32_t(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f)));
  magnitude += 0xfff + ((magnitude >> 13) & 1);
  return uint16_t(sign | ((magnitude - 0x38000000) >> 13));
}

inline float get(float x) { return x; }
inline double get(double x) { return x; }
inline float get(Bf16 x) { return bf16_to_f32(x.bits); }
inline float get(F16 x) { return f16_to_f32(x.bits); }
inline float get(F8E4M3 x) { return e4m3_to_f32(x.bits); }
inline float get(F8E5M2 x) { return e5m2_to_f32(x.bits); }
inline int64_t get(int32_t x) { return x; }
inline int64_t get(int64_t x) { return x; }
inline int64_t get(uint8_t x) { return x; }

inline void put(float& to, float x) { to = x; }
inline void put(double& to, double x) { to = x; }
inline void put(Bf16& to, float x) { to.bits = f32_to_bf16(x); }
inline void put(F16& to, float x) { to.bits = f32_to_f16(x); }
inline void put(F8E4M3& to, float x) { to.bits = f32_to_e4m3(x); }
inline void put(F8E5M2& to, float x) { to.bits = f32_to_e5m2(x); }
inline void put(int32_t& to, int64_t x) { to = int32_t(x); }
inline void put(int64_t& to, int64_t x) { to = x; }
inline void put(uint8_t& to, int64_t x) { to = uint8_t(x); }

// Sums of integers wrap; those of reals are themselves.
inline float plus(float a, float b) { return a + b; }
inline double plus(double a, double b) { return a + b; }
inline int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

template <class T>
struct Type {};

// Calls f(Type<T>{}) with the T of a real dtype.
template <class F>
void with_real(int32_t dtype, F&& f) {
  switch (dtype) {
    case ORR_F32: return f(Type<float>{});
    case ORR_F64: return f(Type<double>{});
    case ORR_BF16: return f(Type<Bf16>{});
    default: return f(Type<F16>{});
  }
}

// The same for every dtype; BOOL is one byte like U8.
template <class F>
void with_any(int32_t dtype, F&& f) {
  switch (dtype) {
    case ORR_I32: return f(Type<int32_t>{});
    case ORR_I64: return f(Type<int64_t>{});
    case ORR_U8:
    case ORR_BOOL: return f(Type<uint8_t>{});
    case ORR_F8_E4M3: return f(Type<F8E4M3>{});
    case ORR_F8_E5M2: return f(Type<F8E5M2>{});
    default: return with_real(dtype, f);
  }
}

// Calls f(Type<T>{}, Type<Y>{}) with the T of `from` and the Y of `to`. REQUIRES: sums_into(from,
// to); a real dtype.
template <class F>
void with_real_sum(int32_t from, int32_t to, F&& f) {
  with_real(from, [&]<class T>(Type<T> t) {
    if (from == to) return f(t, t);
    if constexpr (std::is_same_v<T, float>)
      return to == ORR_BF16 ? f(t, Type<Bf16>{}) : f(t, Type<F16>{});
    else
      return f(t, Type<Acc<T>>{});
  });
}

// The same for every dtype.
template <class F>
void with_sum(int32_t from, int32_t to, F&& f) {
  if (is_real(from)) return with_real_sum(from, to, f);
  with_any(from, [&]<class T>(Type<T> t) {
    if constexpr (std::is_integral_v<T>) return from == to ? f(t, t) : f(t, Type<int64_t>{});
  });
}

// f32 functions are the f64 ones rounded: within half an ulp, and the same on every machine.
template <class A>
A exp_of(A x) {
  return A(std::exp(double(x)));
}
template <class A>
A log_of(A x) {
  return A(std::log(double(x)));
}

}  // namespace reference
