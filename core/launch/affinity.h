// SPDX-License-Identifier: Apache-2.0
//
// Divides the CPUs of a host among its ranks: which CPUs a rank is pinned to, and how many threads
// it computes with. Ranks get whole cores, neighbours together. If there are more ranks than cores,
// they get hardware threads. If there are more ranks than these, the same number of ranks shares
// each, or if that is not possible no rank is pinned. The bits of a run never depend on it.
#pragma once

#include <string>
#include <vector>

#include "launch/environment.h"
#include "launch/topology.h"

namespace orrery {

// Whether ranks that share a host are pinned (--pin); set before any rank starts.
struct Pinning {
  bool on = true;
  bool asked = false;  // the user has asked for it: if it is not possible, that is an error
};
Pinning& pinning();

struct CpuShare {
  std::vector<int> cpus;  // empty: not pinned
  int threads = 1;
};
// The share of one of `ranks` that divide these cores.
CpuShare share_of(const std::vector<Core>& cores, int rank, int ranks);

// The same for CPUs of this machine. Throws Error if pinning was asked for and is not possible.
std::vector<int> cpu_share(const std::vector<int>& cpus, int rank, int ranks);
int thread_share(const std::vector<int>& cpus, int rank, int ranks);
// The CPUs in the order in which threads should take them: first one of each core, then the others.
std::vector<int> order_by_core(const std::vector<int>& cpus);

// For a rank of another launcher: how many ranks must divide the CPUs that it may use, and its
// index among them. A rank that its launcher has bound to CPUs, or that is alone, has them for
// itself.
struct Division {
  int rank, ranks;
};
Division division_of(const World& world, bool bound);

// For a rank of another launcher: pins the process to its share, as our launcher does for its
// ranks, unless that launcher has pinned it already, and returns the number of threads to use.
// Returns 0 for a rank of our launcher, which gives the number itself. REQUIRES: there is no other
// thread, and allowed_cpus was not called before. [main thread]
int take_share(const World& world);

// A list of CPUs as text: "0-3,8".
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace orrery
