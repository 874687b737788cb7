// SPDX-License-Identifier: Apache-2.0
#include "base/short_list.h"

#include <gtest/gtest.h>

#include <random>

#include "base/name.h"

namespace orrery {
namespace {

using List = ShortList<int64_t, 4>;

// Both lists after the same change, chosen by chance.
void change(std::mt19937& random, List& list, std::vector<int64_t>& vector) {
  const auto at = static_cast<std::ptrdiff_t>(random() % (vector.size() + 1));
  const int64_t x = random() % 100;
  const std::vector<int64_t> some = {x, x + 1, x + 2};
  switch (random() % 7) {
    case 0: list.push_back(x), vector.push_back(x); break;
    case 1: list.insert(list.begin() + at, x), vector.insert(vector.begin() + at, x); break;
    case 2:
      list.insert(list.begin() + at, some.begin(), some.end());
      vector.insert(vector.begin() + at, some.begin(), some.end());
      break;
    case 3:
      list.erase(list.begin() + at, list.end()), vector.erase(vector.begin() + at, vector.end());
      break;
    case 4: list.resize(7, x), vector.resize(7, x); break;
    case 5:
      list.erase(list.begin(), list.begin() + at);
      vector.erase(vector.begin(), vector.begin() + at);
      break;
    default: list.assign(2, x), vector.assign(2, x);
  }
}

TEST(ShortList, IsWhatAVectorIs) {
  std::mt19937 random(1);
  List list;
  std::vector<int64_t> vector;
  for (int i = 0; i < 2000; ++i) {
    change(random, list, vector);
    ASSERT_EQ(std::vector<int64_t>(list.begin(), list.end()), vector) << i;
    const List copy = list;
    List moved = std::move(list);
    ASSERT_EQ(copy, moved);
    list = std::move(moved);
    ASSERT_EQ(list, List(vector));
  }
}

TEST(ShortList, IsOrderedByItsElements) {
  EXPECT_LT((List{1, 2}), (List{1, 3}));
  EXPECT_LT((List{1, 2}), (List{1, 2, 0}));
  EXPECT_NE((List{1, 2}), (List{1, 2, 0}));
  EXPECT_THROW((List{1}).at(1), std::out_of_range);
}

TEST(Name, IsItsText) {
  const Name a = "f.lua:3", b = std::string("f.lua:") + "3", other = "f.lua:4";
  EXPECT_TRUE(a == b && a == "f.lua:3" && !(a == other));
  EXPECT_EQ(a.c_str(), b.c_str());  // kept once
  EXPECT_TRUE(Name().empty() && Name("") == Name());
  EXPECT_EQ("at " + a, "at f.lua:3");
}

}  // namespace
}  // namespace orrery
