// SPDX-License-Identifier: Apache-2.0
//
// The waits before a job starts again.
#include "launch/restarts.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

using std::chrono::seconds;

std::vector<int64_t> waits(const std::vector<int>& lasted) {
  Restarts restarts(static_cast<int>(lasted.size()));
  std::vector<int64_t> found;
  for (int time : lasted) found.push_back(restarts.next_wait(seconds(time)).count());
  return found;
}

TEST(Restarts, WaitTwiceAsLongEachTimeUpToAMinute) {
  EXPECT_EQ(waits({0, 0, 9, 1, 0, 0, 0, 0, 0}),
            (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
}

TEST(Restarts, ProgressBeginsTheWaitsAnew) {
  EXPECT_EQ(waits({0, 0, 0, 10, 0, 0, 3600, 9}), (std::vector<int64_t>{1, 2, 4, 1, 2, 4, 1, 2}));
}

}  // namespace
}  // namespace orrery
