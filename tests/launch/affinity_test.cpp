// SPDX-License-Identifier: Apache-2.0
#include "launch/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/machine.h"

namespace orrery {
namespace {

// A machine that is only described, in hwloc's words.
Topology described(const char* words) {
  setenv("HWLOC_SYNTHETIC", words, 1);
  const Topology t = Topology::load();
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_FALSE(t.here);
  return t;
}

// Two sockets of four cores; the threads of a core have numbers eight apart, neighbours alternate
// sockets.
constexpr const char* two_sockets =
    "pack:2 [numa] core:4 pu:2(indexes=0,8,2,10,4,12,6,14,1,9,3,11,5,13,7,15)";

TEST(Share, WholeCoresOfOneNodeTogether) {
  const Topology t = described(two_sockets);
  EXPECT_EQ(t.packages, 2);
  EXPECT_EQ(t.nodes, 2);
  ASSERT_EQ(t.cores.size(), 8u);
  const CpuShare first = share_of(t.cores, 0, 2), second = share_of(t.cores, 1, 2);
  EXPECT_EQ(first.threads, 4);
  EXPECT_EQ(first.cpus, (std::vector<int>{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(second.cpus, (std::vector<int>{1, 3, 5, 7, 9, 11, 13, 15}));
}

TEST(Share, PartsCoverTheCoresOnce) {
  const Topology t = described(two_sockets);
  for (int ranks = 1; ranks <= 16; ++ranks) {
    std::vector<int> seen;
    int threads = 0;
    for (int r = 0; r < ranks; ++r) {
      const CpuShare share = share_of(t.cores, r, ranks);
      EXPECT_GE(share.threads, std::max(1, 8 / ranks)) << r << " of " << ranks;
      EXPECT_TRUE(std::is_sorted(share.cpus.begin(), share.cpus.end()) || ranks > 8);
      seen.insert(seen.end(), share.cpus.begin(), share.cpus.end());
      threads += share.threads;
    }
    std::sort(seen.begin(), seen.end());
    for (int cpu = 0; cpu < 16; ++cpu) EXPECT_EQ(seen.at(static_cast<size_t>(cpu)), cpu) << ranks;
    EXPECT_EQ(seen.size(), 16u);
    EXPECT_EQ(threads, std::max(8, ranks));
  }
}

TEST(Share, ACrowdIsDealtEvenlyOrNotAtAll) {
  const Topology t = described(two_sockets);
  EXPECT_TRUE(share_of(t.cores, 3, 17).cpus.empty());
  EXPECT_EQ(share_of(t.cores, 3, 17).threads, 1);
  std::vector<int> ranks_on(16, 0), order;
  for (int r = 0; r < 48; ++r) {
    const CpuShare share = share_of(t.cores, r, 48);
    ASSERT_EQ(share.cpus.size(), 1u);
    EXPECT_EQ(share.threads, 1);
    ++ranks_on.at(static_cast<size_t>(share.cpus[0]));
    order.push_back(share.cpus[0]);
  }
  EXPECT_EQ(ranks_on, std::vector<int>(16, 3));
  EXPECT_EQ(order[0], order[2]);  // neighbours together
}

TEST(Share, OnlyWhatTheProcessMayUse) {
  const Topology t = described(two_sockets);
  const std::vector<Core> cores = t.allowed({1, 2, 9, 10, 12, 40});
  EXPECT_EQ(cores, (std::vector<Core>{{2, 10}, {12}, {1, 9}, {40}}));
  EXPECT_EQ(share_of(cores, 1, 2).cpus, (std::vector<int>{1, 9, 40}));
}

TEST(Share, AMachineWithoutCoresHasCpus) {
  EXPECT_EQ(described("pu:3").cores, (std::vector<Core>{{0}, {1}, {2}}));
}

TEST(Share, ListsOfCpusAreShort) {
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(cpu_list({}), "");
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
  const int have = static_cast<int>(allowed_cpus().size());
  if (have < 2 || have > 15) GTEST_SKIP() << "needs 2 to 15 CPUs";
  const std::vector<Core> cores = Topology::load().allowed(allowed_cpus());
  const CpuShare second = share_of(cores, 1, 2);
  const Taken half = take(2, "Open MPI", false), crowd = take(have + 1, "Open MPI", false);
  EXPECT_EQ(half.threads, second.threads);
  EXPECT_EQ(half.cpus, static_cast<int>(second.cpus.size()));
  EXPECT_LT(half.cpus, have);
  EXPECT_EQ(crowd.threads, 1);
  EXPECT_EQ(crowd.cpus, have);
  EXPECT_EQ(take(2 * have, "Open MPI", false).cpus, 1);
  EXPECT_EQ(take(2, "orrery", false).cpus, have);
  const Taken bound = take(2, "Open MPI", true), alone = take(1, "single process", false);
  EXPECT_EQ(bound.threads, 1);
  EXPECT_EQ(bound.cpus, 1);
  EXPECT_EQ(alone.threads, static_cast<int>(cores.size()));
  EXPECT_EQ(alone.cpus, have);
}

TEST(Share, ABoundRankDividesNothing) {
  World w;
  w.size = w.local_size = 4;
  w.rank = w.local_rank = 2;
  EXPECT_EQ(division_of(w, false).ranks, 4);
  EXPECT_EQ(division_of(w, false).rank, 2);
  EXPECT_EQ(division_of(w, true).ranks, 1);
  EXPECT_EQ(division_of(w, true).rank, 0);
  EXPECT_EQ(division_of(World{}, false).ranks, 1);
}

TEST(Share, PinningThatWasAskedForIsRefusedWhereItCannotBe) {
  const std::vector<int> cpus = allowed_cpus();
  const int crowd = static_cast<int>(cpus.size()) + 1;
  EXPECT_TRUE(cpu_share(cpus, 0, crowd).empty());
  pinning() = {true, true};
  EXPECT_THROW(cpu_share(cpus, 0, crowd), Error);
  pinning() = {false, true};
  EXPECT_TRUE(cpu_share(cpus, 0, 1).empty());
  pinning() = {};
}

}  // namespace
}  // namespace orrery
