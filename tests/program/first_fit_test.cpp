// SPDX-License-Identifier: Apache-2.0
#include "lower/schedule/first_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lower/lower.h"

namespace orrery {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t end_of(const Storage& s) {
  return (s.offset + s.whole() + kAlignment - 1) / kAlignment * kAlignment;
}

// The lowest offset at which the storage meets none of the others, which are sorted by offset.
uint64_t lowest(const Storage& s, const std::vector<Storage>& placed) {
  uint64_t offset = 0;
  for (const Storage& other : placed) {
    if (offset + s.whole() <= other.offset) break;
    if (other.meets(s)) offset = std::max(offset, end_of(other));
  }
  return offset;
}

// Storages of two eras, and of both: of forward, of backward, and what waits for backward. In the
// first era some are large, so that what lives in both leaves holes in the second. Some live
// twice, and the last ones are short, as the steps of a recurrence have them.
Storage drawn(std::mt19937& random, int i, int n) {
  const auto any = [&](int most) { return static_cast<int>(random() % unsigned(most)); };
  constexpr int kEra = 1000;
  Storage s;
  s.bytes = 1 + static_cast<uint64_t>(any(200));
  const int a = 100 + any(300), kind = any(20);
  if (i > n / 2 && kind > 5) {
    const int first = any(2 * kEra);
    s.alive = {{first, first + any(4)}};
  } else if (kind < 4) {
    s.alive = {{kEra + a, 2 * kEra - a}};
  } else if (kind < 6) {
    s.alive = {{a, kEra - 1 - a}};
    if (any(8) == 0) s.bytes *= 100;
  } else if (kind == 6) {
    s.alive = {{a - 100, a - any(50)}, {2 * kEra - 150, 2 * kEra - a / 4}};
  } else if (kind == 7 && any(20) == 0) {
    s.alive = {};
  } else {
    s.alive = {{a, 2 * kEra - a}};
  }
  return s;
}

TEST(FirstFit, TakesTheLowestFreeOffset) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    const int n = 1500;
    std::vector<Storage> all, placed;
    all.reserve(n);
    FirstFit fit(kAlignment);
    uint64_t bytes = 0;
    for (int i = 0; i < n; ++i) {
      Storage& s = all.emplace_back(drawn(random, i, n));
      const uint64_t expected = lowest(s, placed);
      fit.place(s);
      ASSERT_EQ(s.offset, expected) << "seed " << seed << ", storage " << i;
      bytes = std::max(bytes, end_of(s));
      const auto before = [](const Storage& x, const Storage& y) { return x.offset < y.offset; };
      placed.insert(std::upper_bound(placed.begin(), placed.end(), s, before), s);
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
