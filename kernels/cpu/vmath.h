// SPDX-License-Identifier: Apache-2.0
//
// Transcendental functions of sixteen floats. They are polynomials of our own with explicit fma, so
// that the bits are the same with every instruction set, in the body and in the tail of a row. The
// comments give the largest error in ulp over all finite inputs (measured by
// tests/kernels/cpu_math_test.cpp).
#pragma once

#include "simd.h"

namespace orr_cpu::ORR_ISA {

// c[0] + c[1] x + ... by Horner's rule.
template <int n>
ORR_INLINE v16f polynomial(v16f x, const float (&c)[n]) {
  v16f y = splat(c[n - 1]);
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) y = fma(y, x, splat(c[i]));
  return y;
}

ORR_INLINE v16f infinity() { return as_float(splat_int(0x7f800000)); }
ORR_INLINE v16f copy_sign(v16f size, v16f sign) {
  return as_float(as_int(size) | (as_int(sign) & splat_int(INT32_MIN)));
}

// Returns y and sets n such that exp(x) = 2^n (1 + y). REQUIRES: |x| <= 105, or NaN.
ORR_INLINE v16f exp_parts(v16f x, v16f& n) {
  constexpr float c[] = {0x1p-1f, 0x1.55548ep-3f, 0x1.55545ep-5f, 0x1.123bep-7f, 0x1.6db4e4p-10f};
  n = round_even(x * splat(0x1.715476p+0f));
  v16f r = fma(n, splat(-0x1.62e43p-1f), x);
  r = fma(n, splat(0x1.05c61p-29f), r);
  return fma(polynomial(r, c), r * r, r);
}
ORR_INLINE v16f power_of_two(v16i n) { return as_float(shift_left(n + splat_int(127), 23)); }

// 1.1 ulp. Overflows to infinity above 88.72 and goes through the subnormals to 0.
ORR_INLINE v16f exp(v16f x) {
  v16f n, y = exp_parts(max(splat(-105.0f), min(splat(89.0f), x)), n) + splat(1.0f);  // NaN passes
  v16i k = to_int_even(n), half = shift_right_signed(k, 1);
  return select(is_nan(x), x, y * power_of_two(half) * power_of_two(k - half));
}

// 1 ulp. log(0) is -infinity, of a negative number NaN.
ORR_INLINE v16f log(v16f x) {
  constexpr float c[] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4b6p-3f,
                         -0x1.555c4ep-3f, 0x1.233766p-3f,  -0x1.fc220ep-4f,
                         0x1.e6f08cp-4f,  -0x1.de3bf8p-4f, 0x1.14573ep-4f};
  m16 tiny = x < splat(0x1p-126f);
  v16i bits = as_int(select(tiny, x * splat(0x1p24f), x));
  v16i over = bits - splat_int(0x3f3504f3);  // the bits of sqrt(1/2)
  v16i e = shift_right_signed(over, 23);
  v16f f = as_float(bits - shift_left(e, 23)) - splat(1.0f);
  v16f n = to_float(e) - select(tiny, splat(24.0f), splat(0.0f));
  v16f f2 = f * f;
  v16f y = fma(n, splat(-0x1.05c61p-29f), f2 * f * polynomial(f, c));
  y = fma(splat(-0.5f), f2, y) + f;
  y = fma(n, splat(0x1.62e43p-1f), y);
  y = select(x == infinity(), x, y);
  y = select(x == splat(0.0f), -infinity(), y);
  return select(x >= splat(0.0f), y, as_float(splat_int(0x7fc00000)));
}

// 1.4 ulp. From |x| = 10 on the result is 1, so one factor is enough for the 2^n of exp(2|x|).
ORR_INLINE v16f tanh(v16f x) {
  constexpr float c[] = {-0x1.555532p-2f, 0x1.110726p-3f, -0x1.b83c58p-5f, 0x1.522692p-6f,
                         -0x1.75e1a8p-8f};
  v16f size = abs(x), n, y = exp_parts(min(splat(20.0f), size + size), n) + splat(1.0f);
  v16f e = y * power_of_two(to_int_even(n)) + splat(1.0f);
  v16f z = x * x;
  v16f small = fma(polynomial(z, c) * z, x, x);
  v16f large = copy_sign(splat(1.0f) - splat(2.0f) / e, x);
  return select(size < splat(0.625f), small, select(is_nan(x), x, large));
}

// 2.3 ulp.
ORR_INLINE v16f sigmoid(v16f x) {
  v16f e = exp(-abs(x));
  return select(x < splat(0.0f), e, splat(1.0f)) / (splat(1.0f) + e);
}

// 1.1 ulp.
ORR_INLINE v16f erf(v16f x) {
  constexpr float near[] = {0x1.06eba8p-3f, -0x1.812744p-2f,  0x1.ce2e2p-4f,  -0x1.b8107cp-6f,
                            0x1.54dad8p-8f, -0x1.aae984p-11f, 0x1.5f113cp-14f};
  constexpr float far[] = {-0x1.57f138p-13f, 0x1.2123dep+0f,  0x1.4459ecp-1f,
                           0x1.baa7acp-4f,   -0x1.98a2fep-6f, 0x1.0b23f8p-8f,
                           -0x1.a73278p-12f, 0x1.03a29ap-16f, 0x1.d60758p-22f};
  v16f size = abs(x), z = x * x;
  v16f small = fma(polynomial(z, near), x, x);
  v16f large = splat(1.0f) - exp(-polynomial(min(splat(4.0f), size), far));
  large = select(is_nan(x), x, copy_sign(large, x));
  return select(size < splat(0.921875f), small, large);
}

// exp(-|z|), 0 from |z| = 87.7 on, for gelu(x) = x / (1 + exp(-z)), where 1 + tanh(u) = 2 / (1 +
// exp(-2u)).
ORR_INLINE v16f gelu_exp(v16f x) {
  v16f z = x * fma(splat(0.07135481627f), x * x, splat(1.595769122f));
  v16f n, y = exp_parts(max(splat(-88.0f), -abs(z)), n) + splat(1.0f);
  return y * power_of_two(to_int_even(n));
}
ORR_INLINE v16f gelu(v16f x) {
  v16f e = gelu_exp(x);
  return x * select(x < splat(0.0f), e, splat(1.0f)) / (splat(1.0f) + e);
}
// The derivative s + x s (1 - s) z', where s is the sigmoid of z. From |x| = 16 on it is 0 or 1; no
// power of x may overflow there.
ORR_INLINE v16f gelu_grad(v16f x) {
  x = max(splat(-64.0f), min(splat(64.0f), x));  // NaN passes
  v16f e = gelu_exp(x), d = splat(1.0f) / (splat(1.0f) + e), other = e * d;
  v16f slope = fma(splat(0.2140644488f), x * x, splat(1.595769122f));
  return fma(x * other * d, slope, select(x < splat(0.0f), other, d));
}

}  // namespace orr_cpu::ORR_ISA
