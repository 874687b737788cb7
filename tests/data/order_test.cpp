// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "data/batch_reader.h"
#include "data/columns.h"
#include "data/joined.h"
#include "data/made_tokenizer.h"
#include "data/slice.h"

namespace orrery {
namespace {

DatasetPtr numbers(int32_t count, int32_t first = 0) {
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count) * 4);
  for (int32_t i = 0; i < count; ++i) {
    const int32_t value = first + i;
    std::memcpy(bytes->data() + i * 4, &value, 4);
  }
  const Column x{{"x", {ORR_I32, {}}}, bytes, 0, 4};
  return std::make_shared<Columns>(std::vector{x}, count);
}

DatasetPtr text_of(const std::string& text, const std::string& tokens, int64_t ctx) {
  return windows_of(text, plugin_tokenizer("text", {{"kind", tokens}}, text, "t"), ctx, "t");
}

std::vector<int64_t> batch_samples(const Samples& samples, const BatchOrder& order) {
  std::vector<int64_t> chosen;
  for (const Pick& pick : batch_picks(samples, order)) chosen.push_back(pick.sample);
  return chosen;
}

std::vector<int32_t> read_all(const DatasetPtr& data, const std::vector<Pick>& picks,
                              size_t field) {
  BatchReader batch(data, picks);
  const auto row = static_cast<size_t>(data->fields()[field].sample.elements());
  std::vector<int32_t> read(picks.size() * row);
  batch.load(field, 0, static_cast<int64_t>(picks.size()),
             reinterpret_cast<std::byte*>(read.data()));
  return read;
}

TEST(Order, ShuffledEpochsVisitEverySampleOnce) {
  const Samples data{numbers(10)};
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

TEST(Order, ABatchIsAFunctionOfSeedAndStep) {
  const Samples data{numbers(100)};
  EXPECT_EQ(batch_samples(data, {3, 8, true, 1}), batch_samples(data, {3, 8, true, 1}));
  EXPECT_NE(batch_samples(data, {3, 8, true, 1}), batch_samples(data, {3, 8, true, 2}));
}

TEST(Order, ASampleDrawsAnewInEveryEpochAndForEverySeed) {
  const Samples data{numbers(1)};
  const auto draw = [&](int64_t step, uint64_t seed) {
    return batch_picks(data, {step, 1, true, seed})[0].draw;
  };
  EXPECT_EQ(draw(2, 1), draw(2, 1));
  EXPECT_NE(draw(1, 1), draw(2, 1));
  EXPECT_NE(draw(1, 1), draw(1, 2));
}

TEST(Order, AListSaysTheSamplesOfAnEpoch) {
  const std::vector<int64_t> lists[] = {{4, 9, 9}, {0, 1, 2}};
  BatchOrder order{1, 2, true, 7, Rest::own_batch};
  order.listed = [&](int64_t epoch) -> const std::vector<int64_t>& { return lists[epoch]; };
  order.length = 3;
  const Samples data{numbers(10)}, shard{numbers(20), 1, 2};
  const std::vector<std::vector<int64_t>> wanted = {{4, 9}, {9}, {0, 1}, {2}};
  for (const auto& batch : wanted) {
    EXPECT_EQ(batch_samples(data, order), batch);
    EXPECT_EQ(batch_samples(shard, order).front(), 2 * batch.front() + 1);
    ++order.step;
  }
  EXPECT_EQ(order.epoch(order.items(data)), 2);
  order.step = 2, order.rest = Rest::joined;
  EXPECT_EQ(batch_samples(data, order), (std::vector<int64_t>{9, 0}));
  // A sample that is there twice is changed at random twice.
  order.step = 1, order.size = 3;
  const auto picks = batch_picks(data, order);
  EXPECT_EQ(picks[1].sample, picks[2].sample);
  EXPECT_NE(picks[1].draw, picks[2].draw);
}

TEST(Order, ShardsPartTheSamples) {
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < 3; ++rank) {
    Samples data{numbers(10)};
    data.shard = rank;
    data.shards = 3;
    for (int64_t sample : batch_samples(data, {1, data.items(), false, 1})) {
      EXPECT_TRUE(seen.insert(sample).second) << sample;
    }
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(BatchReader, ARankLoadsItsRowsOnly) {
  BatchReader batch(numbers(10), batch_picks({numbers(10)}, {1, 6, false, 1}));
  int32_t rows[2] = {};
  batch.load(0, 4, 6, reinterpret_cast<std::byte*>(rows));
  EXPECT_EQ(rows[0], 4);
  EXPECT_EQ(rows[1], 5);
}

TEST(Joined, PartsFollowEachOther) {
  const DatasetPtr all = join({numbers(3), numbers(2, 10)}, {"a", "b"});
  EXPECT_EQ(all->samples(), 5);
  EXPECT_EQ(read_all(all, {{4}, {0}, {3}, {2}}, 0), (std::vector<int32_t>{11, 0, 10, 2}));
}

// Numbers whose classes have these names.
struct Named : Columns {
  explicit Named(std::vector<std::string> names)
      : Columns({{{"y", {ORR_I32, {}}}, std::make_shared<std::vector<std::byte>>(4), 0, 4}}, 1) {
    classes_ = std::move(names);
  }
};

TEST(Joined, ANumberIsOneThingInAllParts) {
  const auto refused = [](const DatasetPtr& a, const DatasetPtr& b, const std::string& wanted) {
    try {
      join({a, b}, {"a", "b"});
      FAIL() << wanted;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), wanted);
    }
  };
  const auto named = [](std::vector<std::string> names) { return std::make_shared<Named>(names); };
  refused(named({"cat", "dog"}), named({"bird", "cat"}),
          "a and b have other classes: cat, dog, and bird, cat; number them alike before they are "
          "joined");
  refused(text_of("abcd", "chars", 1), text_of("abce", "chars", 1),
          "a and b have other tokens, of 4 and 4; make both with one tokenizer");
  EXPECT_EQ(join({text_of("abcd", "bytes", 1), text_of("efg", "bytes", 1)}, {"a", "b"})->samples(),
            5);
  EXPECT_EQ(join({text_of("abab", "chars", 1), text_of("bba", "chars", 1)}, {"a", "b"})->samples(),
            5);
  EXPECT_EQ(join({named({"cat"}), named({"cat"})}, {"a", "b"})->samples(), 2);
}

TEST(Slice, BeginsWhereItIsTold) {
  const DatasetPtr part = slice(numbers(10), 4, 3);
  EXPECT_EQ(part->samples(), 3);
  EXPECT_EQ(read_all(part, {{0}, {2}}, 0), (std::vector<int32_t>{4, 6}));
}

TEST(Beside, HasTheFieldsOfAllParts) {
  const DatasetPtr both = beside({numbers(3), numbers(3, 10)});
  EXPECT_EQ(read_all(both, {{2}, {0}}, 0), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(read_all(both, {{2}, {0}}, 1), (std::vector<int32_t>{12, 10}));
  EXPECT_THROW(beside({numbers(3), numbers(2)}), Error);
}

TEST(Mixed, SmallerPartsAreSeenAgain) {
  const DatasetPtr all = mix({numbers(30), numbers(5, 100)}, {30, 90});
  ASSERT_EQ(all->samples(), 120);
  std::vector<int64_t> seen(105);
  for (int32_t value : read_all(all, batch_picks({all}, {1, 120, true, 1}), 0))
    ++seen[static_cast<size_t>(value)];
  EXPECT_EQ(std::count(seen.begin(), seen.begin() + 30, 1), 30);
  EXPECT_EQ(std::count(seen.begin() + 100, seen.end(), 18), 5);
}

TEST(Text, TargetsAreTheNextTokens) {
  const DatasetPtr data = text_of("abcdefgh", "chars", 3);
  const auto picks = batch_picks({data}, {1, 2, false, 1});
  EXPECT_EQ(read_all(data, picks, 0), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(read_all(data, picks, 1), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Text, CharactersAreCodePoints) {
  const auto tokenizer = text_of("aé€a", "chars", 2)->tokenizer();
  EXPECT_EQ(tokenizer->vocab(), 3);
  EXPECT_EQ(tokenizer->encode("€a", "t"), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(tokenizer->decode({1, 2}), "é€");
}

TEST(Text, RandomWindowsStayInside) {
  const Samples data{text_of(std::string(50, 'x') + "y", "bytes", 8)};
  for (int64_t sample : batch_samples(data, {1, 500, true, 3})) {
    EXPECT_GE(sample, 0);
    EXPECT_LE(sample, 51 - 8 - 1);
  }
}

}  // namespace
}  // namespace orrery
