// SPDX-License-Identifier: Apache-2.0
//
// Diffs of ops against lines written by hand.
#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/diff.h"

namespace orrery {
namespace {

std::vector<OpLine> lines(const std::string& letters, const std::string& size = "") {
  std::vector<OpLine> made;
  for (char c : letters) made.push_back({std::string(1, c), c + size});
  return made;
}

std::string changes(const OpDiff& diff) {
  std::vector<std::string> made;
  for (const Change& change : diff.changes) made.push_back(change.sign + change.text);
  return join(made, ",");
}

TEST(OpDiff, SaysWhatCameAndWent) {
  const OpDiff diff = diff_ops(lines("abcdefg"), lines("abcXdfg"));
  EXPECT_EQ(changes(diff), " a, b, c,+X, d,-e, f, g");
  EXPECT_EQ(diff.added, 1u);
  EXPECT_EQ(diff.removed, 1u);
  EXPECT_EQ(diff.resized, 0u);
}

TEST(OpDiff, CountsOpsOfOtherSizes) {
  const OpDiff diff = diff_ops(lines("abc", "[8]"), lines("abc", "[4]"));
  EXPECT_EQ(changes(diff), " a[4], b[4], c[4]");
  EXPECT_EQ(diff.resized, 3u);
  EXPECT_EQ(diff.added + diff.removed, 0u);
}

}  // namespace
}  // namespace orrery
