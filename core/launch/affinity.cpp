// SPDX-License-Identifier: Apache-2.0
#include "launch/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "launch/ancestor.h"

namespace orrery {
namespace {

std::vector<Core> cores_of(const std::vector<int>& cpus) {
  static const Topology machine = Topology::load();
  return machine.allowed(cpus);
}

std::vector<int> mask_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

// The process that has started the ranks.
pid_t starter() {
  return ancestor_without({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
}

}  // namespace

Pinning& pinning() {
  static Pinning chosen;
  return chosen;
}

CpuShare share_of(const std::vector<Core>& cores, int rank, int ranks) {
  const auto cut = [&](size_t n, int r) {
    return static_cast<size_t>(r) * n / static_cast<size_t>(ranks);
  };
  if (static_cast<size_t>(ranks) <= cores.size()) {
    CpuShare share;
    const size_t begin = cut(cores.size(), rank), end = cut(cores.size(), rank + 1);
    for (size_t i = begin; i < end; ++i)
      share.cpus.insert(share.cpus.end(), cores[i].begin(), cores[i].end());
    std::sort(share.cpus.begin(), share.cpus.end());
    share.threads = static_cast<int>(end - begin);
    return share;
  }
  std::vector<int> threads;
  for (const Core& core : cores) threads.insert(threads.end(), core.begin(), core.end());
  const auto begin = threads.begin();
  if (const int cpus = static_cast<int>(threads.size()); ranks > cpus) {
    if (ranks % cpus != 0) return {};
    return {{begin[rank / (ranks / cpus)]}, 1};
  }
  return {{begin + static_cast<long>(cut(threads.size(), rank)),
           begin + static_cast<long>(cut(threads.size(), rank + 1))},
          1};
}

std::vector<int> cpu_share(const std::vector<int>& cpus, int rank, int ranks) {
  if (!pinning().on) return {};
  const CpuShare share = share_of(cores_of(cpus), rank, ranks);
  if (share.cpus.empty() && pinning().asked)
    fail(ORR_INVALID,
         "--pin cores: {} ranks of this host cannot share {} CPUs evenly: use another number of "
         "ranks, or --pin none",
         ranks, cpus.size());
  return share.cpus;
}

Division division_of(const World& world, bool bound) {
  if (world.local_size < 2 || bound) return {0, 1};
  return {world.local_rank, world.local_size};
}

int thread_share(const std::vector<int>& cpus, int rank, int ranks) {
  return share_of(cores_of(cpus), rank, ranks).threads;
}

std::vector<int> order_by_core(const std::vector<int>& cpus) {
  std::vector<int> order;
  const std::vector<Core> cores = cores_of(cpus);
  for (size_t i = 0; order.size() < cpus.size(); ++i)
    for (const Core& core : cores)
      if (i < core.size()) order.push_back(core[i]);
  return order;
}

// A rank is bound if it may use fewer CPUs than the process that has started it.
int take_share(const World& world) {
  if (world.source == "orrery") return 0;
  const std::vector<int> own = mask_of(0), all = mask_of(starter());
  const Division place = division_of(world, !all.empty() && own != all);
  const int threads = thread_share(own, place.rank, place.ranks);
  if (place.ranks == 1) return threads;
  const std::vector<int> mine = cpu_share(own, place.rank, place.ranks);
  if (mine.empty()) return threads;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : mine) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  return threads;
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0, end; i < cpus.size(); i = end) {
    for (end = i + 1; end < cpus.size() && cpus[end] == cpus[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (end - i > 1) text += fmt::format("-{}", cpus[end - 1]);
  }
  return text;
}

}  // namespace orrery
