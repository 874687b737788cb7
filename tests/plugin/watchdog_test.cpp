// SPDX-License-Identifier: Apache-2.0
//
// Which calls of plugins other threads see, and of which the watchdog tells when.
#include "plugin/watchdog.h"

#include <gtest/gtest.h>

#include <latch>

namespace orrery {
namespace {

using std::chrono::seconds;

std::vector<std::string> functions_under_way() {
  std::vector<std::string> names;
  for (const CallUnderWay& call : Inside::under_way()) names.emplace_back(call.function);
  return names;
}

using Names = std::vector<std::string>;

TEST(UnderWay, TheOutermostCallIsSeenAndThoseThatWaitAreNot) {
  const Inside step({"a driver", "step", true});
  EXPECT_EQ(functions_under_way(), Names{});
  {
    const Inside transform({"a strategy", "transform"});
    const Inside shape({"an op", "shape"});
    EXPECT_EQ(functions_under_way(), Names{"transform"});
  }
  const Inside post({"a backend", "post", true});
  EXPECT_EQ(functions_under_way(), Names{});
}

TEST(UnderWay, EveryEntryAndEveryThreadIsAnother) {
  const auto seen = [] {
    const Inside inside({"a kernel", "launch"});
    return Inside::under_way().at(0);
  };
  const CallUnderWay first = seen(), second = seen();
  EXPECT_EQ(first.thread, second.thread);
  EXPECT_NE(first.entry, second.entry);
  CallUnderWay other{};
  std::thread([&] { other = seen(); }).join();
  EXPECT_NE(other.thread, first.thread);
  EXPECT_EQ(functions_under_way(), Names{});
}

TEST(UnderWay, ACallOfAnotherThreadIsSeenUntilItReturns) {
  std::latch inside{1}, looked{1};
  std::thread thread([&] {
    const Inside launch({"a kernel", "launch"});
    inside.count_down();
    looked.wait();
  });
  inside.wait();
  EXPECT_EQ(functions_under_way(), Names{"launch"});
  looked.count_down();
  thread.join();
  EXPECT_EQ(functions_under_way(), Names{});
}

TEST(CallAges, ACallIsToldOfAfterADeadlineAndAfterEachDoubling) {
  CallAges ages(seconds(3));
  const std::vector<CallUnderWay> calls = {{1, 7, "kernel 'x'", "launch"}};
  std::vector<int> told;
  for (int second = 0; second <= 13; ++second)
    if (!ages.look(calls, seconds(1)).empty()) told.push_back(second);
  EXPECT_EQ(told, (std::vector<int>{3, 6, 12}));
  EXPECT_EQ(ages.oldest().value().text(), "in 'launch' of kernel 'x' for 13 s");
}

TEST(CallAges, AnotherEntryIsAnotherCall) {
  CallAges ages(seconds(3));
  for (uint64_t entry = 0; entry < 20; ++entry)
    EXPECT_TRUE(ages.look({{1, entry / 3, "kernel 'x'", "launch"}}, seconds(1)).empty());
  EXPECT_TRUE(ages.look({}, seconds(9)).empty());
  EXPECT_FALSE(ages.oldest());
}

// A thread of the pool that comes later is in the call that was told of already.
TEST(CallAges, ThreadsInOneFunctionAreToldOfTogether) {
  CallAges ages(seconds(2));
  std::vector<CallUnderWay> calls = {{1, 1, "kernel 'x'", "launch"},
                                     {2, 1, "kernel 'x'", "launch"}};
  ages.look(calls, seconds(1));
  EXPECT_TRUE(ages.look(calls, seconds(1)).empty());
  EXPECT_EQ(ages.look(calls, seconds(1)).size(), 1u);
  calls[1].entry = 2;
  EXPECT_TRUE(ages.look(calls, seconds(1)).empty());
  EXPECT_EQ(ages.look(calls, seconds(1)).size(), 1u);
}

}  // namespace
}  // namespace orrery
