// SPDX-License-Identifier: Apache-2.0
//
// Nearest names and sizes for people.
#include "base/text.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Text, NearestAllowsAThirdOfTheLetters) {
  const std::vector<std::string> known = {"pipeline", "data", "local"};
  EXPECT_EQ(nearest("pipline", known), "pipeline");
  EXPECT_EQ(nearest("lcoal", known), "local");
  EXPECT_EQ(nearest("date", known), "data");
  EXPECT_EQ(nearest("dtaa", known), "data");
  EXPECT_EQ(nearest("zero", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Text, NearestTakesTheCloserOfTwo) {
  EXPECT_EQ(nearest("stage", {"states", "stages"}), "stages");
}

TEST(Text, DidYouMean) {
  EXPECT_EQ(did_you_mean("pipline", {"pipeline"}), " (did you mean 'pipeline'?)");
  EXPECT_EQ(did_you_mean("other", {"pipeline"}), "");
}

TEST(Text, HumanBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(256.0 * 1024 * 1024), "256 MiB");
}

TEST(Text, Join) { EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c"); }

}  // namespace
}  // namespace orrery
