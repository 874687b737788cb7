// SPDX-License-Identifier: Apache-2.0
//
// Backends that have nothing but messages: the core composes all else of them
// (core/comm/emulation.h), with the results that the scalar model wants of every backend.
#include <gtest/gtest.h>

#include "settings.h"

namespace comm_suite {
namespace {

class Composed : public Everywhere {};

TEST_P(Composed, CollectivesEqualTheScalarModel) {
  for (int n : {2, 3}) {
    const auto outcome = run(GetParam(), n, "collectives", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(Composed, EmptyPartsAreTheSameOperationOnAllRanks) {
  for (int n : {2, 3}) {
    const auto outcome = run(GetParam(), n, "empties", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(Composed, SplitsWork) {
  const auto outcome = run(GetParam(), 4, "splits", "", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(Composed, SeveralCommunicatorsAreInProgressAtOnce) {
  const auto outcome = run(GetParam(), 3, "several at once", "", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(Composed, ADeadPeerIsNamed) {
  const auto outcome = run(GetParam(), 3, "falls", "9 100000", {"ORRERY_DEADLINE=20"});
  if (GetParam().launcher == "orrery") {
    EXPECT_NE(outcome.output.find("'all_reduce bucket 3' (train.lua:12)"), std::string::npos)
        << outcome.output;
  }
  EXPECT_NE(outcome.output.find("rank 2 died"), std::string::npos) << outcome.output;
}

const Setting over[] = {{.backend = "local", .launcher = "orrery", .bare = true},
                        {.backend = "mpi", .launcher = "mpirun.openmpi", .bare = true}};

INSTANTIATE_TEST_SUITE_P(Messages, Composed, testing::ValuesIn(over),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace comm_suite
