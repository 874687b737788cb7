// SPDX-License-Identifier: Apache-2.0
//
// The conversions of the cpu kernels and of the reference give the same bits, NaNs included.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "../../kernels/cpu/vec.h"
#include "../../kernels/reference/element.h"

namespace {

using namespace orr_cpu::ORR_ISA;

uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}

class Half : public ::testing::Test {
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c"))
      GTEST_SKIP() << "needs AVX2 and F16C";
  }
};

TEST_F(Half, WidensAsTheReference) {
  for (uint32_t at = 0; at < 65536; at += kLanes) {
    f16 x[kLanes];
    float y[kLanes];
    for (int i = 0; i < kLanes; ++i) x[i].bits = uint16_t(at + uint32_t(i));
    store(y, load(x, Full{}));
    for (int i = 0; i < kLanes; ++i) {
      EXPECT_EQ(bits_of(y[i]), bits_of(reference::f16_to_f32(x[i].bits))) << x[i].bits;
      EXPECT_EQ(bits_of(load_one(x + i)), bits_of(y[i]));
    }
  }
}

// All exponents and signs, with mantissas of every kind around ties.
TEST_F(Half, NarrowsAsTheReference) {
  std::mt19937 random(7);
  std::vector<uint32_t> low = {0,      1,      0xfff,  0x1000,   0x1001,
                               0x1fff, 0x2000, 0x3000, 0x400000, 0x7fffff};
  for (int i = 0; i < 118; ++i) low.push_back(uint32_t(random()) & 0x7fffff);
  for (uint32_t top = 0; top < 512; ++top)
    for (size_t at = 0; at < low.size(); at += kLanes) {
      float x[kLanes];
      f16 y[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        uint32_t u = top << 23 | low[at + size_t(i)];
        std::memcpy(x + i, &u, 4);
      }
      store(y, load(x), Full{});
      for (int i = 0; i < kLanes; ++i)
        EXPECT_EQ(y[i].bits, reference::f32_to_f16(x[i])) << bits_of(x[i]);
      float z[kLanes];
      store(z, rounded<f16>(load(x)));
      for (int i = 0; i < kLanes; ++i) EXPECT_EQ(bits_of(z[i]), bits_of(load_one(y + i)));
    }
}

}  // namespace
