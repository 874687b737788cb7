// SPDX-License-Identifier: Apache-2.0
//
// Send and recv: sizes beyond the ring, groups that cross, tags out of order, registered memory.
#include <gtest/gtest.h>

#include "settings.h"

namespace comm_suite {
namespace {

TEST_P(BesidesTheJudge, ReceivesFromAnySource) {
  for (int n = 2; n <= 4; ++n) {
    const auto outcome = run(GetParam(), n, "any source", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(OnMain, UnequalTagsAreNamed) {
  const auto outcome = run(GetParam(), 2, "unequal tags", "", {"ORRERY_DEADLINE=10"});
  if (ranks::count(outcome.output, "tags select")) GTEST_SKIP() << "tags select";
  EXPECT_GE(ranks::count(
                outcome.output,
                "rank 0 sends 4 f32 'pair', tag 5 to rank 1, which receives 4 f32 'pair', tag 6"),
            speakers(2))
      << outcome.output;
}

TEST_P(Everywhere, MessagesArrive) {
  for (int n = 2; n <= 4; ++n) {
    const auto outcome = run(GetParam(), n, "pairs", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

}  // namespace
}  // namespace comm_suite
