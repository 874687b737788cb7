// SPDX-License-Identifier: Apache-2.0
#include "job/share.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

TEST(Share, PartsCoverTheCpusOnce) {
  const std::vector<int> cpus{0, 1, 2, 3, 8};
  EXPECT_EQ(cpu_share(cpus, 0, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(cpu_share(cpus, 1, 2), (std::vector<int>{2, 3, 8}));
  EXPECT_TRUE(cpu_share(cpus, 3, 6).empty());
  EXPECT_EQ(thread_share(cpus, 2), 2);
  EXPECT_EQ(thread_share(cpus, 6), 1);
}

// What take_share answers and how many CPUs are left, asked in a process of its own.
struct Taken {
  int threads, cpus;
};
Taken take(int local_size, const std::string& source, bool pinned) {
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = CPU_SETSIZE - 1; pinned && CPU_COUNT(&set) > 1; --cpu) CPU_CLR(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    World w;
    w.size = w.local_size = local_size;
    w.rank = w.local_rank = local_size - 1;
    w.source = source;
    const int threads = take_share(w);
    sched_getaffinity(0, sizeof set, &set);
    _exit(threads * 16 + std::min(CPU_COUNT(&set), 15));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WEXITSTATUS(status) / 16, WEXITSTATUS(status) % 16};
}

TEST(Share, RanksOfAnotherLauncherTakeTheirs) {
  cpu_set_t own, all;
  sched_getaffinity(0, sizeof own, &own);
  sched_getaffinity(1, sizeof all, &all);
  const int have = CPU_COUNT(&own);
  if (have < 2 || have > 15 || !CPU_EQUAL(&own, &all)) GTEST_SKIP() << "needs 2 to 15 CPUs, none pinned";
  const Taken half = take(2, "Open MPI", false), crowd = take(64, "Open MPI", false);
  EXPECT_EQ(half.threads, 0);
  EXPECT_EQ(half.cpus, have - have / 2);
  EXPECT_EQ(crowd.threads, 1);
  EXPECT_EQ(crowd.cpus, have);
  EXPECT_EQ(take(2, "orrery", false).cpus, have);
  EXPECT_EQ(take(2, "Open MPI", true).threads, 0);
  EXPECT_EQ(take(1, "single process", false).cpus, have);
}

}  // namespace
}  // namespace orrery
