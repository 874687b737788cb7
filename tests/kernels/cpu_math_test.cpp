// SPDX-License-Identifier: Apache-2.0
//
// Errors of the cpu kernels' own transcendentals, in units of the last place, against libm in
// double. Every 97th float of the whole line is tried; the bounds are those that vmath.h states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../../kernels/cpu/vmath.h"

namespace {

using namespace orr_cpu::ORR_ISA;

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

// The distance of `got` from `want` in places of a float near `near`.
double places(float got, double want, double near) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : INFINITY;
  if (double(got) == want || got == float(want)) return 0;
  if (std::isinf(got) || std::isinf(float(want))) return INFINITY;
  int e = std::max(std::ilogb(near), -126);
  return std::fabs(double(got) - want) / std::ldexp(1.0, e - 23);
}

double itself(double, double want) { return want; }

// `near(x, want)` is the number whose places are counted.
template <class Fn, class Libm>
void check(const char* name, Fn fn, Libm libm, double bound,
           double (*near)(double, double) = itself) {
  double worst = 0;
  float at = 0;
  float x[kLanes], y[kLanes];
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 97 * kLanes) {
    for (int i = 0; i < kLanes; ++i) x[i] = from_bits(uint32_t(bits + 97 * uint64_t(i)));
    store(y, fn(load(x)));
    for (int i = 0; i < kLanes; ++i) {
      double want = libm(double(x[i])), error = places(y[i], want, near(double(x[i]), want));
      if (error > worst) worst = error, at = x[i];
    }
  }
  std::printf("%s: %.2f ulp at %a\n", name, worst, double(at));
  EXPECT_LE(worst, bound) << name << " at " << at;
}

class Math : public ::testing::Test {
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "needs AVX2";
  }
};

TEST_F(Math, Exp) {
  check(
      "exp", [](v16f x) { return exp(x); }, [](double x) { return std::exp(x); }, 1.5);
}
TEST_F(Math, Log) {
  check(
      "log", [](v16f x) { return log(x); }, [](double x) { return std::log(x); }, 1.5);
}
TEST_F(Math, Tanh) {
  check(
      "tanh", [](v16f x) { return tanh(x); }, [](double x) { return std::tanh(x); }, 2);
}
TEST_F(Math, Erf) {
  check(
      "erf", [](v16f x) { return erf(x); }, [](double x) { return std::erf(x); }, 2);
}
TEST_F(Math, Sigmoid) {
  check(
      "sigmoid", [](v16f x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); },
      3);
}

constexpr double kGelu = 0.79788456080286535588;  // sqrt(2/pi)
double tanh_of_gelu(double x) { return std::tanh(kGelu * (x + 0.044715 * x * x * x)); }

// What counts is the error beside the larger of two terms that cancel. The slope squares x and is
// NaN where that overflows.
TEST_F(Math, Gelu) {
  check(
      "gelu", [](v16f x) { return gelu(x); },
      [](double x) { return 0.5 * x * (1 + tanh_of_gelu(x)); }, 3,
      [](double x, double) { return x / 2; });
}
TEST_F(Math, GeluGrad) {
  auto slope = [](double x) {
    x = std::clamp(x, -64.0, 64.0);  // 0 or 1 beyond
    double t = tanh_of_gelu(x), du = kGelu * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
  };
  check(
      "gelu_grad", [](v16f x) { return gelu_grad(x); }, slope, 4,
      [](double, double) { return 1.0; });
}

}  // namespace
