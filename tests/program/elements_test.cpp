// SPDX-License-Identifier: Apache-2.0
//
// Single elements as numbers: what 16-bit types can hold comes back, all else is rounded to nearest
// even.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <orrery/types.h>

#include "program/elements.h"

namespace program_test {
namespace {

double half(uint16_t bits) { return orrery::read_element(ORR_F16, &bits); }

uint16_t stored(int32_t dtype, double value) {
  uint16_t bits;
  orrery::write_element(dtype, &bits, value);
  return bits;
}

TEST(Elements, AllHalvesComeBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double value = half(static_cast<uint16_t>(bits));
    if (exponent == 31 && mantissa) {
      EXPECT_TRUE(std::isnan(value) && std::isnan(half(stored(ORR_F16, value)))) << bits;
      continue;
    }
    const double size = exponent == 31 ? HUGE_VAL
                        : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                       : std::ldexp(mantissa, -24);
    EXPECT_EQ(value, bits & 0x8000 ? -size : size) << bits;
    EXPECT_EQ(stored(ORR_F16, value), bits);
  }
}

TEST(Elements, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // the midpoints above every finite one
    const double below = half(static_cast<uint16_t>(bits));
    const double above = bits == 0x7bff ? 65536 : half(static_cast<uint16_t>(bits + 1));
    const double middle = (below + above) / 2;
    EXPECT_EQ(stored(ORR_F16, middle), bits + (bits & 1)) << below;
    EXPECT_EQ(stored(ORR_F16, std::nextafter(middle, 0)), bits) << below;
    EXPECT_EQ(stored(ORR_F16, -std::nextafter(middle, HUGE_VAL)), 0x8000 + bits + 1) << below;
  }
}

TEST(Elements, BfloatsRoundToNearestEven) {
  EXPECT_EQ(stored(ORR_BF16, 257.0), stored(ORR_BF16, 256.0));
  EXPECT_EQ(stored(ORR_BF16, 259.0), stored(ORR_BF16, 260.0));
}

}  // namespace
}  // namespace program_test
