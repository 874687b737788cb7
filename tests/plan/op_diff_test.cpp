// SPDX-License-Identifier: Apache-2.0
//
// Diffs of ops against texts written by hand.
#include <gtest/gtest.h>

#include "plan/diff.h"

namespace orrery {
namespace {

std::vector<OpLine> lines(const std::string& letters, const std::string& size = "") {
  std::vector<OpLine> made;
  for (char c : letters) made.push_back({std::string(1, c), c + size});
  return made;
}

TEST(OpDiff, SaysWhatCameAndWent) {
  const OpDiff diff = diff_ops(lines("abcdefg"), lines("abcXdfg"));
  EXPECT_EQ(diff.text, "@@ op 2 @@\n b\n c\n+X\n d\n-e\n f\n g\n");
  EXPECT_EQ(diff.added, 1u);
  EXPECT_EQ(diff.removed, 1u);
  EXPECT_EQ(diff.resized, 0u);
}

TEST(OpDiff, OpensAHunkForWhatIsFarAway) {
  EXPECT_EQ(diff_ops(lines("abcdefghi"), lines("Xabcdefgh")).text,
            "@@ op 1 @@\n+X\n a\n b\n@@ op 8 @@\n g\n h\n-i\n");
}

TEST(OpDiff, CountsOpsOfOtherSizesAndDoesNotShowThem) {
  const OpDiff diff = diff_ops(lines("abc", "[8]"), lines("abc", "[4]"));
  EXPECT_EQ(diff.text, "");
  EXPECT_EQ(diff.resized, 3u);
}

TEST(OpDiff, ShortensLongRuns) {
  EXPECT_EQ(diff_ops(lines("abcdefghijk"), lines("")).text,
            "@@ op 1 @@\n-a\n-b\n-c\n-d\n-e\n-f\n-g\n-... 3 more\n-k\n");
  EXPECT_EQ(diff_ops(lines(""), lines("abcdefgh")).removed, 0u);
}

}  // namespace
}  // namespace orrery
