// SPDX-License-Identifier: Apache-2.0
//
// Every index once, whatever the number of threads and the moment of the call.
#include "run/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/machine.h"

namespace orrery {
namespace {

using Counts = std::vector<std::atomic<int>>;

void count_one(void* arg, int64_t i) { (*static_cast<Counts*>(arg))[size_t(i)].fetch_add(1); }

void expect_each_once(const Counts& counts) {
  for (size_t i = 0; i < counts.size(); ++i) ASSERT_EQ(counts[i].load(), 1) << "index " << i;
}

class Pool : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { pool_.configure(GetParam()); }
  void TearDown() override { pool_.configure(0); }
  ThreadPool& pool_ = ThreadPool::get();
};

TEST_P(Pool, RunsEveryIndexOnce) {
  EXPECT_EQ(pool_.threads(), GetParam());
  for (int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
    Counts counts(static_cast<size_t>(n));
    pool_.run(n, count_one, &counts);
    expect_each_once(counts);
  }
}

TEST_P(Pool, SurvivesManySmallJobs) {
  Counts counts(5000);
  for (int64_t i = 0; i < 5000; i += 2) {
    auto* pair = &counts[size_t(i)];
    pool_.run(
        2, [](void* arg, int64_t k) { static_cast<std::atomic<int>*>(arg)[k].fetch_add(1); }, pair);
  }
  expect_each_once(counts);
}

TEST_P(Pool, WakesWorkersThatSleep) {
  // Well past the spin: the workers are asleep on their futex when the job comes.
  for (int round = 0; round < 3; ++round) {
    usleep(3000);
    Counts counts(16);
    pool_.run(16, count_one, &counts);
    expect_each_once(counts);
  }
}

TEST_P(Pool, GivesEqualResultsOnAnyNumberOfThreads) {
  std::vector<double> squares(777);
  pool_.run(
      777, [](void* out, int64_t i) { static_cast<double*>(out)[i] = double(i) * double(i) / 3; },
      squares.data());
  for (size_t i = 0; i < squares.size(); ++i) ASSERT_EQ(squares[i], double(i) * double(i) / 3);
}

TEST_P(Pool, DealsContiguousRanges) {
  std::vector<std::thread::id> who(100);
  pool_.run(
      100,
      [](void* out, int64_t i) {
        static_cast<std::thread::id*>(out)[i] = std::this_thread::get_id();
      },
      who.data());
  int changes = 0;
  for (size_t i = 1; i < who.size(); ++i) changes += who[i] != who[i - 1];
  EXPECT_EQ(changes, GetParam() - 1);
  EXPECT_EQ(who[0], std::this_thread::get_id());
}

TEST_P(Pool, NestedCallRunsInline) {
  Counts counts(12);
  pool_.run(
      4,
      [](void* arg, int64_t i) {
        auto* part = &(*static_cast<Counts*>(arg))[size_t(3 * i)];
        ThreadPool::get().run(
            3, [](void* p, int64_t k) { static_cast<std::atomic<int>*>(p)[k].fetch_add(1); }, part);
      },
      &counts);
  expect_each_once(counts);
}

TEST_P(Pool, PinsItsThreadsApart) {
  const size_t cpus = allowed_cpus().size();
  std::vector<cpu_set_t> masks(static_cast<size_t>(GetParam()));
  pool_.run(
      GetParam(),
      [](void* out, int64_t i) {
        sched_getaffinity(0, sizeof(cpu_set_t), static_cast<cpu_set_t*>(out) + i);
      },
      masks.data());
  if (GetParam() == 1) return;  // stays where it may run anyway
  for (size_t i = 0; i < masks.size(); ++i) {
    EXPECT_EQ(CPU_COUNT(&masks[i]), 1);
    EXPECT_TRUE(CPU_ISSET(allowed_cpus()[i % cpus], &masks[i])) << "thread " << i;
  }
  pool_.unpin();
  sched_getaffinity(0, sizeof(cpu_set_t), &masks[0]);
  EXPECT_EQ(size_t(CPU_COUNT(&masks[0])), cpus);
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, ::testing::Values(1, 2, 3, 8));

TEST(Pool, ConcurrentCallersBothFinish) {
  ThreadPool::get().configure(2);
  Counts first(20000), second(20000);
  std::thread other([&] { ThreadPool::get().run(20000, count_one, &first); });
  ThreadPool::get().run(20000, count_one, &second);
  other.join();
  expect_each_once(first);
  expect_each_once(second);
  ThreadPool::get().configure(0);
}

}  // namespace
}  // namespace orrery
