// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm a product gets, on the fake cuBLASLt: the fastest of those that have the bits of
// the one that counts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "fake_step.h"

namespace {

using namespace fake_step;

constexpr int64_t depth = 96;

float number(int64_t i) { return static_cast<float>((i * 7919 + 13) % 1009) / 1009 - 0.4f; }

// A folder without results of earlier tests, and the one algorithm that is fast.
class Products : public ::testing::Test {
 protected:
  void SetUp() override {
    device();
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("FAKE_LT_FASTEST");
    std::filesystem::remove_all(folder_);
  }

  // The first 8 rows of a product of so many, and whether the fastest algorithm computed it.
  struct Result {
    std::vector<float> values;
    bool fastest;
  };
  static Result multiply(int64_t m, int64_t n) {
    Memory a(ORR_TIER_PINNED, 4 * m * depth), b(ORR_TIER_PINNED, 4 * depth * n),
        y(ORR_TIER_PINNED, 4 * m * n);
    Memory da(ORR_TIER_DEVICE, 4 * m * depth), db(ORR_TIER_DEVICE, 4 * depth * n),
        dy(ORR_TIER_DEVICE, 4 * m * n);
    for (int64_t i = 0; i < m * depth; ++i) a.floats()[i] = number(i);
    for (int64_t i = 0; i < depth * n; ++i) b.floats()[i] = number(i + 5);
    const Kernel kernel(product(m, depth, n));
    const Stream stream;
    stream.copy(da, a);
    stream.copy(db, b);
    const auto before = calls({"fastest algorithm"});
    kernel.launch(stream, {da.whole, db.whole}, dy);
    const bool fastest = calls({"fastest algorithm"}) > before;
    stream.copy(y, dy);
    stream.finish();
    return {{y.floats(), y.floats() + 8 * n}, fastest};
  }

 private:
  std::string folder_ =
      std::filesystem::temp_directory_path() / ("products." + std::to_string(getpid()));
};

// Two of the six algorithms have the order of the nominal product's.
TEST_F(Products, TheFastestOfEqualBitsIsUsed) {
  std::vector<float> bits;
  int used = 0;
  int64_t rows = 16;
  for (const char* fastest : {"0 0", "0 1", "1 0", "1 1", "2 0", "2 1"}) {
    setenv("FAKE_LT_FASTEST", fastest, 1);
    const Result r = multiply(rows++, 24);
    if (bits.empty()) bits = r.values;
    EXPECT_EQ(r.values, bits) << fastest;
    used += r.fastest;
  }
  EXPECT_EQ(used, 2);
}

// The fake's first algorithm takes no 52 columns.
TEST_F(Products, WithoutTheNominalAlgorithmTheFirstOneForTheShapeServes) {
  testing::internal::CaptureStdout();
  const Result r = multiply(16, 52);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("[16, 96] x [96, 52] by an algorithm of its own (cublaslt.f32.own/1)"),
            said.npos)
      << said;
  for (int64_t i = 0; i < 8 * 52; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += double{number(i / 52 * depth + k)} * number(k * 52 + i % 52 + 5);
    ASSERT_NEAR(r.values[static_cast<size_t>(i)], sum, 1e-4) << i;
  }
}

// How the sum of K rows of a' and b, of m and n columns, is named.
std::string numerics_of(int64_t m, int64_t n, int64_t k, int64_t leaves = 1) {
  Case c;
  c.kind = "matmul";
  c.in = {kernel_suite::strided(ORR_BF16, {1, m, k}, {m * k, 1, m}), tensor(ORR_BF16, {1, k, n})};
  c.out = {tensor(ORR_BF16, {leaves == 1 ? 1 : orr_tree_nodes(0, leaves, leaves), m, n})};
  c.attrs = {kernel_suite::integer("leaf_lo", 0), kernel_suite::integer("leaf_n", leaves),
             kernel_suite::integer("leaf_total", leaves)};
  const orr_kernel_api& api = orrery::Registry::get().kernel("cuda");
  orr_support support{};
  support.size = sizeof support;
  const AbiOp op(c);
  api.supports(api.self, &op.op, &support);
  return support.numerics;
}

// The library is left a gradient with many columns, with whole packets in its rows, or with few
// rows to sum in each leaf.
TEST_F(Products, LongSumsOfFewOddColumnsAreThePluginsOwn) {
  EXPECT_EQ(numerics_of(64, 27, 262144), "cuda.windows.bf16.parts/1");
  EXPECT_EQ(numerics_of(512, 27, 65536, 4), "cuda.windows.bf16.parts/1");
  EXPECT_EQ(numerics_of(512, 27, 65536, 8), "cublaslt.bf16.own/1");
  EXPECT_EQ(numerics_of(65, 99, 262144), "cublaslt.bf16.own/1");
  EXPECT_EQ(numerics_of(64, 24, 262144), "cublaslt.bf16.own/1");
}

TEST_F(Products, ARaceFreesItsMemory) {
  const auto held = [] { return calls({"cuMemAlloc"}) - calls({"cuMemFree"}); };
  const auto before = held(), allocated = calls({"cuMemAlloc"});
  const Kernel kernel(product(40));
  EXPECT_GT(calls({"cuMemAlloc"}), allocated + 1);
  EXPECT_EQ(held(), before + (kernel.workspace ? 1 : 0));
}

}  // namespace
