// SPDX-License-Identifier: Apache-2.0
//
// orr_philox against a plain Philox 4x32-10, which is held to the published known answers
// (Random123, kat_vectors). Two steps, because an element index cannot reach every counter of the
// vectors.
#include <gtest/gtest.h>
#include <orrery/ops.h>

#include <array>

namespace {

using Words = std::array<uint32_t, 4>;

Words philox(Words c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(c[0]) * 0xD2511F53, b = uint64_t(c[2]) * 0xCD9E8D57;
    c = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key[1],
         uint32_t(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return c;
}

TEST(Philox, PlainFormGivesTheKnownAnswers) {
  constexpr uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, ElementsAreWordsOfTheirCounter) {
  for (uint64_t seed : {0ull, 1ull, 0x299f31d0a4093822ull, ~0ull})
    for (uint64_t element : {0ull, 1ull, 2ull, 3ull, 4ull, 17179869183ull, 17179869184ull, ~0ull})
      for (uint32_t id : {0u, 42u, ~0u}) {
        Words w = philox({uint32_t(element / 4), uint32_t(element / 4 >> 32), id, id + 5},
                         {uint32_t(seed), uint32_t(seed >> 32)});
        EXPECT_EQ(orr_philox(seed, id, id + 5, element), w[element % 4]) << seed << " " << element;
      }
}

TEST(Philox, UniformIsTheUpperBits) {
  EXPECT_EQ(orr_uniform(0, 0, 0, 0), float(0x6627e8) / 16777216.0f);
  double sum = 0;
  for (uint64_t e = 0; e < 10000; ++e) {
    float u = orr_uniform(7, 8, 9, e);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

}  // namespace
