// SPDX-License-Identifier: Apache-2.0
//
// Every collective of every backend against the scalar model on 1 to 5 ranks
// (tests/conformance/comm).
#include <gtest/gtest.h>

#include "settings.h"

namespace comm_suite {
namespace {

TEST_P(BesidesTheJudge, SiblingsStayApart) {
  const auto outcome = run(GetParam(), 4, "siblings", "", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(BesidesTheJudge, SeveralCommunicatorsAreInProgressAtOnce) {
  for (int n : {2, 4}) {
    const auto outcome = run(GetParam(), n, "several at once", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(BesidesTheJudge, CollectivesEqualTheScalarModel) {
  for (int n : sizes(GetParam())) {
    const auto outcome = run(GetParam(), n, "collectives", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(BesidesTheJudge, SharedMemoryIsOne) {
  for (int n : sizes(GetParam())) {
    const auto outcome = run(GetParam(), n, "shared", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(Everywhere, SplitsWork) {
  for (int n : {1, 4}) {
    const auto outcome = run(GetParam(), n, "splits", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(BesidesTheJudge, SplitsOfAnyRanksWork) {
  for (int n : sizes(GetParam())) {
    const auto outcome = run(GetParam(), n, "splits", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

}  // namespace
}  // namespace comm_suite
