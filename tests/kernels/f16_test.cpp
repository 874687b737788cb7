// SPDX-License-Identifier: Apache-2.0
//
// Half precision: conversions of every plugin against a model that searches the ordered list of
// halves, and the cpu kernels take f16 wherever they take bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "compare.h"
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

double half(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 31 ? HUGE_VAL
                      : exponent     ? std::ldexp(1024 + mantissa, int(exponent) - 25)
                                     : std::ldexp(mantissa, -24);
  return bits & 0x8000 ? -size : size;
}

// The finite halves from 0 on, and what rounding takes for the next one: 2^16 stands for infinity.
const Values& magnitudes() {
  static const Values all = [] {
    Values v;
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) v.push_back(half(bits));
    v.push_back(65536);
    return v;
  }();
  return all;
}

double model(double x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  const double size = std::fabs(x);
  size_t above = size_t(std::lower_bound(magnitudes().begin(), magnitudes().end(), size) -
                        magnitudes().begin());
  if (above == magnitudes().size()) return std::copysign(HUGE_VAL, x);
  if (above && magnitudes()[above] != size) {
    const double up = magnitudes()[above] - size, down = size - magnitudes()[above - 1];
    if (down < up || (down == up && above % 2)) --above;
  }
  return std::copysign(above == 0x7c00 ? HUGE_VAL : magnitudes()[above], x);
}

// A cast of `values` from one dtype to another.
Case cast(int32_t from, int32_t to, const Values& v) {
  Case c{
      "pointwise", "cast", {tensor(from, {int64_t(v.size())})}, {tensor(to, {int64_t(v.size())})}};
  c.instrs = {{ORR_FN_INPUT, from, 0, 0, 0, 0, 0}, {ORR_FN_CAST, to, 0, 0, 0, 0, 0}};
  c.stored = {1};
  c.fills = {values(v)};
  return c;
}

void expect_cast(const std::string& plugin, int32_t from, int32_t to, const Values& v,
                 const Values& want) {
  Case c = cast(from, to, v);
  RunResult r = run(plugin, c, {v});
  ASSERT_EQ(r.unsupported, "");
  ASSERT_TRUE(clean(r));
  EXPECT_TRUE(equal(c, r.values, {want}));
  for (size_t i = 0; i < v.size(); ++i)
    EXPECT_EQ(std::signbit(r.values[0][i]), std::signbit(want[i])) << v[i];
}

class F16 : public ::testing::TestWithParam<std::string> {};

TEST_P(F16, EveryHalfComesBack) {
  Values all;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    if ((bits & 0x7fff) <= 0x7c00) all.push_back(half(bits));
  for (int32_t wide : {ORR_F32, ORR_F64}) {
    expect_cast(GetParam(), ORR_F16, wide, all, all);
    expect_cast(GetParam(), wide, ORR_F16, all, all);
  }
}

TEST_P(F16, FloatsRoundToNearestEven) {
  Values v = {NAN, HUGE_VAL, -HUGE_VAL, 1e30, 0x1p-26, 0x1p-149};
  for (size_t i = 0; i + 1 < magnitudes().size(); ++i) {  // a tie, and its neighbours
    const float middle = float((magnitudes()[i] + magnitudes()[i + 1]) / 2);
    v.insert(v.end(),
             {middle, -middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)});
  }
  std::mt19937 random(16);
  for (int i = 0; i < 100000; ++i)
    v.push_back(std::ldexp(float(random()) - 0x1p31f, int(random() % 60) - 70));
  Values want;
  for (double x : v) want.push_back(model(x));
  expect_cast(GetParam(), ORR_F32, ORR_F16, v, want);
}

INSTANTIATE_TEST_SUITE_P(Plugins, F16, ::testing::ValuesIn(host_plugins()));

// Products that read windows of more than three dims where they overlap: the core copies these
// where the kernel does not take them.
bool reads_windows(const Case& c) {
  return c.kind == "matmul" &&
         std::any_of(c.in.begin(), c.in.end(), [](const orr_tensor& t) { return t.rank > 3; });
}

// A hole would leave a part of an f16 model to the reference kernels.
TEST(F16Coverage, IsThatOfBf16) {
  for (const std::string& plugin : host_plugins()) {
    std::map<std::string, std::map<int32_t, int>> taken;  // op -> dtype -> cases
    for (const Case& c : all_cases())
      for (int32_t dtype : {ORR_BF16, ORR_F16}) {
        auto has = [&](const orr_tensor& t) { return t.dtype == dtype; };
        if (!std::any_of(c.in.begin(), c.in.end(), has) &&
            !std::any_of(c.out.begin(), c.out.end(), has))
          continue;
        if (!reads_windows(c)) taken[c.kind][dtype] += takes(plugin, c);
      }
    EXPECT_GT(taken.size(), 15u);
    for (auto& [kind, cases] : taken)
      EXPECT_EQ(cases[ORR_F16], cases[ORR_BF16]) << plugin << " " << kind;
  }
}

}  // namespace
}  // namespace kernel_suite
