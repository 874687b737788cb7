// SPDX-License-Identifier: Apache-2.0
//
// Pointwise steps on doubles, and sines, which reduce their argument in double.
#include <math.h>

#include "pointwise_steps.h"
#include "pointwise_wide.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class To, class Fn>
inline void each(void* to, Fn&& fn) {
  To* out = (To*)to;
  for (int i = 0; i < kBlock; ++i) out[i] = fn(i);
}
inline int32_t mask(bool b) { return b ? -1 : 0; }

// A few lines per function beat a table of pointers: each loop is compiled for its body.
// clang-format off
#define ORR_REAL(name, value) \
  case name: return each<double>(to, [=](int i) { return value; });
#define ORR_TEST(name, value) \
  case name: return each<int32_t>(to, [=](int i) { return mask(value); });
// clang-format on

double gelu_inner(double x) { return 0.79788456080286535588 * (x + 0.044715 * x * x * x); }
double gelu_slope(double x) {
  x = x > 64 ? 64 : x < -64 ? -64 : x;  // 0 or 1 there; no power of x may overflow
  double t = ::tanh(gelu_inner(x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * 0.79788456080286535588 * (1 + 3 * 0.044715 * x * x);
}

}  // namespace

void wide_real(int fn, void* to, const void* pa, const void* pb, const void* pc) {
  const double *a = (const double*)pa, *b = (const double*)pb, *c = (const double*)pc;
  const int32_t* m = (const int32_t*)pa;
  switch (fn) {
    ORR_REAL(ORR_FN_ADD, a[i] + b[i])
    ORR_REAL(ORR_FN_SUB, a[i] - b[i])
    ORR_REAL(ORR_FN_MUL, a[i] * b[i])
    ORR_REAL(ORR_FN_DIV, a[i] / b[i])
    ORR_REAL(ORR_FN_MIN, nan_min(a[i], b[i]))
    ORR_REAL(ORR_FN_MAX, nan_max(a[i], b[i]))
    ORR_REAL(ORR_FN_POW, ::pow(a[i], b[i]))
    ORR_REAL(ORR_FN_FMA, __builtin_fma(a[i], b[i], c[i]))
    ORR_REAL(ORR_FN_MOD, a[i] - ::floor(a[i] / b[i]) * b[i])
    ORR_REAL(ORR_FN_NEG, -a[i])
    ORR_REAL(ORR_FN_ABS, ::fabs(a[i]))
    ORR_REAL(ORR_FN_SIGN, a[i] != a[i] ? a[i] : double((a[i] > 0) - (a[i] < 0)))
    ORR_REAL(ORR_FN_SQRT, __builtin_sqrt(a[i]))
    ORR_REAL(ORR_FN_RSQRT, 1 / __builtin_sqrt(a[i]))
    ORR_REAL(ORR_FN_RECIP, 1 / a[i])
    ORR_REAL(ORR_FN_EXP, ::exp(a[i]))
    ORR_REAL(ORR_FN_LOG, ::log(a[i]))
    ORR_REAL(ORR_FN_TANH, ::tanh(a[i]))
    ORR_REAL(ORR_FN_SIGMOID, 1 / (1 + ::exp(-a[i])))
    ORR_REAL(ORR_FN_ERF, ::erf(a[i]))
    ORR_REAL(ORR_FN_SIN, ::sin(a[i]))
    ORR_REAL(ORR_FN_COS, ::cos(a[i]))
    ORR_REAL(ORR_FN_FLOOR, ::floor(a[i]))
    ORR_REAL(ORR_FN_CEIL, ::ceil(a[i]))
    ORR_REAL(ORR_FN_ROUND, ::nearbyint(a[i]))
    ORR_REAL(ORR_FN_GELU, 0.5 * a[i] * (1 + ::tanh(gelu_inner(a[i]))))
    ORR_REAL(ORR_FN_GELU_GRAD, gelu_slope(a[i]))
    ORR_REAL(ORR_FN_SELECT, m[i] ? b[i] : c[i])
    ORR_TEST(ORR_FN_EQ, a[i] == b[i])
    ORR_TEST(ORR_FN_NE, a[i] != b[i])
    ORR_TEST(ORR_FN_LT, a[i] < b[i])
    ORR_TEST(ORR_FN_LE, a[i] <= b[i])
    ORR_TEST(ORR_FN_GT, a[i] > b[i])
    ORR_TEST(ORR_FN_GE, a[i] >= b[i])
    ORR_TEST(ORR_FN_ISFINITE, ::fabs(a[i]) < __builtin_inf())
  }
}

void sines(float* to, const float* a, int n, int quadrant) {
  // x = k pi/2 + r in double, exact to 2^-40 for |x| < 2^30. The loop chooses by masks, without a
  // branch, so that the compiler makes vectors of it.
  const auto bits = [](double x) { return __builtin_bit_cast(int64_t, x); };
  const auto real = [](int64_t x) { return __builtin_bit_cast(double, x); };
  const auto small = [](double x) { return __builtin_fabs(x) < 0x1p30; };
  for (int i = 0; i < n; ++i) {
    double x = real(bits(a[i]) & -int64_t(small(a[i])));
    double k = __builtin_rint(x * 0.63661977236758134308);
    double r = __builtin_fma(k, -0x1.921fb54442d18p+0, x);
    r = __builtin_fma(k, -0x1.1a62633145c07p-54, r);
    double z = r * r;
    double s = r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880))));
    double c =
        1 +
        z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 - z * (1.0 / 3628800)))));
    int64_t quarter = int32_t(k) + quadrant, odd = -(quarter & 1);
    int64_t v = (bits(c) & odd) | (bits(s) & ~odd);
    to[i] = float(real(v ^ int64_t(uint64_t(quarter & 2) << 62)));
  }
  for (int i = 0; i < n; ++i)  // larger ones go to libm
    if (!small(a[i])) to[i] = float(quadrant ? ::cos(double(a[i])) : ::sin(double(a[i])));
}

}  // namespace orr_cpu::ORR_ISA
