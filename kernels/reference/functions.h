// SPDX-License-Identifier: Apache-2.0
//
// The scalar functions of pointwise instructions, and their dispatch by number. f32 functions that
// are not exact are computed in f64 and rounded. Integer arithmetic wraps; x/0 is 0.
#pragma once

#include <orrery/ops.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "element.h"

namespace reference {

// A conversion between accumulators. A real to an integer truncates; what does not fit into one of
// `limit`, and NaN, becomes -limit.
template <class To, class From>
To convert(From x, double limit = 0x1p63) {
  if constexpr (std::integral<To> && std::floating_point<From>) {
    bool fits = x > From(-limit - 1) && x < From(limit);
    return To(fits ? x : From(-limit));
  } else {
    return To(x);
  }
}

inline float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
inline int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
  return int64_t(uint64_t(a) * uint64_t(b) + uint64_t(c));
}

inline int64_t divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}

// a - floor(a/b)*b: the remainder has the sign of b.
inline int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <std::floating_point A>
A modulo(A a, A b) {
  return a - std::floor(a / b) * b;
}

// Wrapping power; a negative exponent gives the truncated real result.
inline int64_t power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1, base = uint64_t(a);
  for (; b; b >>= 1, base *= base)
    if (b & 1) result *= base;
  return int64_t(result);
}
template <std::floating_point A>
A power(A a, A b) {
  return A(std::pow(double(a), double(b)));
}

// NaN wins, as in reduce.
template <class A>
A smaller(A a, A b) {
  return b < a || b != b ? b : a;
}
template <class A>
A larger(A a, A b) {
  return b > a || b != b ? b : a;
}

template <class F>
void with_comparison(int32_t fn, F&& f) {
  switch (fn) {
    case ORR_FN_EQ: return f([](auto a, auto b) { return a == b; });
    case ORR_FN_NE: return f([](auto a, auto b) { return a != b; });
    case ORR_FN_LT: return f([](auto a, auto b) { return a < b; });
    case ORR_FN_LE: return f([](auto a, auto b) { return a <= b; });
    case ORR_FN_GT: return f([](auto a, auto b) { return a > b; });
    default: return f([](auto a, auto b) { return a >= b; });
  }
}

template <class A, class F>
void with_binary(int32_t fn, F&& f) {
  // Unsigned for integers, so that they wrap.
  using W = std::conditional_t<std::integral<A>, uint64_t, A>;
  switch (fn) {
    case ORR_FN_ADD: return f([](A a, A b) { return A(W(a) + W(b)); });
    case ORR_FN_SUB: return f([](A a, A b) { return A(W(a) - W(b)); });
    case ORR_FN_MUL: return f([](A a, A b) { return A(W(a) * W(b)); });
    case ORR_FN_DIV:
      if constexpr (std::integral<A>)
        return f(divide);
      else
        return f([](A a, A b) { return a / b; });
    case ORR_FN_MIN: return f(smaller<A>);
    case ORR_FN_MAX: return f(larger<A>);
    case ORR_FN_POW: return f([](A a, A b) { return power(a, b); });
    default: return f([](A a, A b) { return modulo(a, b); });
  }
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline constexpr double kGelu = 0.79788456080286535588;  // sqrt(2/pi)
inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kGelu * (x + 0.044715 * x * x * x)));
}
inline double gelu_grad(double x) {
  x = x > 64 ? 64 : x < -64 ? -64 : x;  // 0 or 1 there; no power of x may overflow
  double t = std::tanh(kGelu * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGelu * (1 + 3 * 0.044715 * x * x);
}

// Functions of reals only.
template <std::floating_point A, class F>
void with_real_unary(int32_t fn, F&& f) {
  auto wide = [&](double (*g)(double)) { f([g](A x) { return A(g(double(x))); }); };
  switch (fn) {
    case ORR_FN_SQRT: return f([](A x) { return std::sqrt(x); });
    case ORR_FN_RSQRT: return f([](A x) { return A(1) / std::sqrt(x); });
    case ORR_FN_RECIP: return f([](A x) { return A(1) / x; });
    case ORR_FN_EXP: return wide(std::exp);
    case ORR_FN_LOG: return wide(std::log);
    case ORR_FN_TANH: return wide(std::tanh);
    case ORR_FN_SIGMOID: return wide(sigmoid);
    case ORR_FN_ERF: return wide(std::erf);
    case ORR_FN_SIN: return wide(std::sin);
    case ORR_FN_COS: return wide(std::cos);
    case ORR_FN_FLOOR: return f([](A x) { return std::floor(x); });
    case ORR_FN_CEIL: return f([](A x) { return std::ceil(x); });
    case ORR_FN_ROUND: return f([](A x) { return std::nearbyint(x); });
    case ORR_FN_GELU: return wide(gelu);
    default: return wide(gelu_grad);
  }
}

template <class A, class F>
void with_unary(int32_t fn, F&& f) {
  using W = std::conditional_t<std::integral<A>, uint64_t, A>;
  switch (fn) {
    case ORR_FN_NEG: return f([](A x) { return A(-W(x)); });
    case ORR_FN_ABS:
      if constexpr (std::integral<A>)
        return f([](A x) { return x < 0 ? A(-W(x)) : x; });
      else
        return f([](A x) { return std::fabs(x); });
    case ORR_FN_SIGN: return f([](A x) { return x > 0 ? A(1) : x < 0 ? A(-1) : x; });
    default:
      if constexpr (std::floating_point<A>) with_real_unary<A>(fn, f);
  }
}

}  // namespace reference
