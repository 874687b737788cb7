// SPDX-License-Identifier: Apache-2.0
#include "base/lane.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "base/error.h"

namespace orrery {
namespace {

TEST(Lane, DoesWorkInOrderBesideTheSubmitter) {
  Lane lane;
  lane.start();
  std::promise<void> go;
  std::vector<int> done;
  lane.submit([&] { go.get_future().wait(), done.push_back(1); });
  const Lane::Ticket last = lane.submit([&] { done.push_back(2); });
  EXPECT_FALSE(lane.done(last));
  go.set_value();
  lane.wait(last);
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_EQ(lane.last(), last);
}

TEST(Lane, DoesWorkAtOnceBeforeItHasAThread) {
  Lane lane;
  int done = 0;
  const Lane::Ticket ticket = lane.submit([&] { ++done; });
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(lane.done(ticket));
}

TEST(Lane, DoesNothingAfterAnErrorAndSaysItAgain) {
  Lane lane;
  lane.start();
  const Lane::Ticket bad = lane.submit([] { throw Error(ORR_FAILED, "broken"); });
  int done = 0;
  const Lane::Ticket later = lane.submit([&] { ++done; });
  EXPECT_THROW(lane.wait(bad), Error);
  EXPECT_THROW(lane.wait(later), Error);
  lane.finish();
  EXPECT_EQ(done, 0);
}

TEST(Lane, NamesWorkThatDoesNotEnd) {
  std::promise<void> go;
  Lane lane;
  lane.start();
  const Lane::Ticket slow = lane.submit([&] { go.get_future().wait(); });
  try {
    lane.wait(slow, std::chrono::milliseconds(5), "too slow");
    ADD_FAILURE() << "it waited for ever";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ORR_DEADLINE);
    EXPECT_STREQ(e.what(), "too slow");
  }
  go.set_value();
}

TEST(Lane, FinishesOrDropsWhatWaits) {
  int done = 0;
  for (const bool drops : {false, true}) {
    std::promise<void> begun, go;
    Lane lane;
    lane.start();
    lane.submit([&] { begun.set_value(), go.get_future().wait(); });
    lane.submit([&] { ++done; });
    begun.get_future().wait();
    if (drops) lane.drop();
    go.set_value();
    lane.finish();
    EXPECT_EQ(done, 1);
  }
}

}  // namespace
}  // namespace orrery
