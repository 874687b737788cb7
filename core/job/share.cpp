// SPDX-License-Identifier: Apache-2.0
#include "job/share.h"

#include <sched.h>

#include <algorithm>

namespace orrery {

std::vector<int> cpu_share(const std::vector<int>& cpus, int rank, int ranks) {
  const int have = static_cast<int>(cpus.size());
  if (ranks > have) return {};
  return {cpus.begin() + rank * have / ranks, cpus.begin() + (rank + 1) * have / ranks};
}

int thread_share(const std::vector<int>& cpus, int ranks) {
  return std::max(1, static_cast<int>(cpus.size()) / ranks);
}

// Pinned is who may use less than the first process of this machine or container.
int take_share(const World& world) {
  cpu_set_t own, all;
  if (world.local_size < 2 || world.source == "orrery" || sched_getaffinity(0, sizeof own, &own) != 0 ||
      sched_getaffinity(1, sizeof all, &all) != 0 || !CPU_EQUAL(&own, &all))
    return 0;
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &own)) cpus.push_back(cpu);
  const std::vector<int> mine = cpu_share(cpus, world.local_rank, world.local_size);
  if (mine.empty()) return thread_share(cpus, world.local_size);
  CPU_ZERO(&own);
  for (int cpu : mine) CPU_SET(cpu, &own);
  sched_setaffinity(0, sizeof own, &own);
  return 0;
}

}  // namespace orrery
