// SPDX-License-Identifier: Apache-2.0
#include "lower/schedule/first_fit.h"

#include <gtest/gtest.h>

#include <random>

#include "lower/lower.h"

namespace orrery {
namespace {

constexpr uint64_t kAlignment = 64;

// The lowest offset at which the storage meets none of the others, found by trying all that may be.
uint64_t lowest(const Storage& s, const std::vector<Storage>& placed) {
  std::vector<uint64_t> tried = {0};
  const auto end = [](const Storage& x) {
    return (x.offset + x.whole() + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const Storage& other : placed) tried.push_back(end(other));
  std::sort(tried.begin(), tried.end());
  for (uint64_t offset : tried)
    if (std::none_of(placed.begin(), placed.end(), [&](const Storage& other) {
          return other.meets(s) && offset < end(other) && other.offset < offset + s.whole();
        }))
      return offset;
  return UINT64_MAX;
}

// Lifetimes as in a recurrence: short ones, and ones from forward to the same step of backward.
std::vector<std::pair<int, int>> lifetimes(std::mt19937& random, int steps) {
  const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int first = any(steps);
  switch (any(4)) {
    case 0: return {{first, 2 * steps - first}};
    case 1: return {{first, first + 2}, {first + 4, first + 5}, {first + 9, first + 9}};
    case 2: return {};
    default: return {{first, first + any(4)}};
  }
}

TEST(FirstFit, TakesTheLowestFreeOffset) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    std::vector<Storage> placed;
    placed.reserve(700);
    FirstFit fit(kAlignment);
    uint64_t bytes = 0;
    for (int i = 0; i < 700; ++i) {
      Storage s;
      s.bytes = 1 + random() % (seed % 2 ? 64 : 1000);
      s.alive = lifetimes(random, 200);
      const uint64_t expected = lowest(s, placed);
      fit.place(placed.emplace_back(std::move(s)));
      ASSERT_EQ(placed.back().offset, expected) << "seed " << seed << ", storage " << i;
      bytes = std::max(bytes, expected + (placed.back().bytes + 63) / 64 * 64);
    }
    EXPECT_EQ(fit.bytes(), bytes);
  }
}

// A plan of storages alone.
RankPlan plan_of(const std::vector<Storage>& storages) {
  RankPlan plan;
  plan.storages = storages;
  return plan;
}

TEST(Verify, SeesBytesThatTwoLivingStoragesShare) {
  Storage a, b;
  a.bytes = b.bytes = 100, a.offset = 64;
  a.alive = {{0, 3}, {8, 9}}, b.alive = {{4, 7}};
  EXPECT_NO_THROW(verify(plan_of({a, b})));
  for (uint64_t offset : {uint64_t{0}, uint64_t{64}, uint64_t{163}}) {
    b.offset = offset, b.alive = {{3, 7}};
    EXPECT_THROW(verify(plan_of({a, b})), std::exception) << offset;
    EXPECT_THROW(verify(plan_of({b, a})), std::exception) << offset;
    b.alive = {{4, 8}};
    EXPECT_THROW(verify(plan_of({a, b})), std::exception) << offset;
  }
  b.offset = 164;
  EXPECT_NO_THROW(verify(plan_of({a, b})));
  b.offset = 0, b.region = Region::comm;
  EXPECT_NO_THROW(verify(plan_of({a, b})));
}

TEST(Attrs, AreSharedUntilTheyChange) {
  Attrs a{{"n", int64_t{2}}, {"axis", "data"}};
  Attrs b = a;
  EXPECT_EQ(a.begin(), b.begin());
  b.set("n", int64_t{3}), b.set("m", 0.5);
  EXPECT_EQ(attr_int(a, "n", 0), 2);
  EXPECT_EQ(attr_int(b, "n", 0), 3);
  std::string order;
  for (auto& [name, value] : b) order += name + " ";
  EXPECT_EQ(order, "axis m n ");
  b.erase("m"), b.set("n", int64_t{2});
  EXPECT_EQ(a, b);
  b.erase("none");
  EXPECT_FALSE(b.has("none"));
  EXPECT_EQ(attr_text(b, "axis", ""), "data");
  EXPECT_EQ(Attrs{}.begin(), Attrs{}.end());
}

}  // namespace
}  // namespace orrery
