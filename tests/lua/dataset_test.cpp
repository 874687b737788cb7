// SPDX-License-Identifier: Apache-2.0
#include "lua/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace orrery::lua {
namespace {

Dataset numbers(int64_t count) {
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count) * 4);
  for (int32_t i = 0; i < count; ++i) std::memcpy(bytes->data() + i * 4, &i, 4);
  Dataset data;
  data.columns = {{"x", {ORR_I32, {}}, bytes, 0, 4}};
  data.samples = count;
  return data;
}

TEST(Dataset, ShuffledEpochsVisitEverySampleOnce) {
  const Dataset data = numbers(10);
  std::vector<int64_t> first, second;
  for (int64_t step = 1; step <= 4; ++step) {
    const auto batch = batch_samples(data, {step, 5, true, 7});
    auto& epoch = step <= 2 ? first : second;
    epoch.insert(epoch.end(), batch.begin(), batch.end());
  }
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    EXPECT_EQ(std::set<int64_t>(epoch->begin(), epoch->end()).size(), 10u);
  }
}

TEST(Dataset, ABatchIsAFunctionOfSeedAndStep) {
  const Dataset data = numbers(100);
  EXPECT_EQ(batch_samples(data, {3, 8, true, 1}), batch_samples(data, {3, 8, true, 1}));
  EXPECT_NE(batch_samples(data, {3, 8, true, 1}), batch_samples(data, {3, 8, true, 2}));
}

TEST(Dataset, ShardsPartTheSamples) {
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < 3; ++rank) {
    Dataset data = numbers(10);
    data.shard = rank;
    data.shards = 3;
    for (int64_t sample : batch_samples(data, {1, data.items(), false, 1})) {
      EXPECT_TRUE(seen.insert(sample).second) << sample;
    }
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(Dataset, ARankLoadsItsRowsOnly) {
  auto data = std::make_shared<const Dataset>(numbers(10));
  const BatchFields batch = make_batch(data, {1, 6, false, 1});
  int32_t rows[2] = {};
  batch.at("x").load(4, 6, reinterpret_cast<std::byte*>(rows));
  EXPECT_EQ(rows[0], 4);
  EXPECT_EQ(rows[1], 5);
}

TEST(Text, TargetsAreTheNextTokens) {
  auto data = std::make_shared<const Dataset>(text_dataset("abcdefgh", "chars", 3, "t"));
  const BatchFields batch = make_batch(data, {1, 2, false, 1});
  int32_t x[6], y[6];
  batch.at("x").load(0, 2, reinterpret_cast<std::byte*>(x));
  batch.at("y").load(0, 2, reinterpret_cast<std::byte*>(y));
  EXPECT_EQ(std::vector<int32_t>(x, x + 6), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(std::vector<int32_t>(y, y + 6), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Text, CharactersAreCodePoints) {
  const Dataset data = text_dataset("aé€a", "chars", 2, "t");
  EXPECT_EQ(data.symbols->size(), 3u);
  EXPECT_EQ(encode(data, "€a"), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(decode(data, {1, 2}), "é€");
}

TEST(Text, RandomWindowsStayInside) {
  const Dataset data = text_dataset(std::string(50, 'x') + "y", "bytes", 8, "t");
  for (int64_t sample : batch_samples(data, {1, 500, true, 3})) {
    EXPECT_GE(sample, 0);
    EXPECT_LE(sample, 51 - 8 - 1);
  }
}

}  // namespace
}  // namespace orrery::lua
