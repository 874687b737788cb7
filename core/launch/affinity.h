// SPDX-License-Identifier: Apache-2.0
//
// Which CPUs of a host are a rank's own, and how many threads it computes with. Whole cores are
// dealt, neighbours together; only where there are more ranks than cores, their hardware threads.
// More ranks than these share them, the same number on each, or nobody is pinned. The bits of a run
// never depend on it.
#pragma once

#include <string>
#include <vector>

#include "launch/environment.h"
#include "launch/topology.h"

namespace orrery {

// Whether ranks that share a host are pinned, as the command line says; set before any rank starts.
// What was asked for by name is done or refused.
struct Pinning {
  bool on = true, asked = false;
};
Pinning& pinning();

struct Share {
  std::vector<int> cpus;  // empty: not pinned
  int threads = 1;
};
// The part of one of `ranks` that may use these cores.
Share share_of(const std::vector<Core>& cores, int rank, int ranks);

// The same of `cpus` on this machine. Throws Error if pinning was asked for and cannot be.
std::vector<int> cpu_share(const std::vector<int>& cpus, int rank, int ranks);
int thread_share(const std::vector<int>& cpus, int rank, int ranks);
// `cpus` in the order in which threads should take them: one of each core, then the cores' others.
std::vector<int> mesh(const std::vector<int>& cpus);

// Between how many ranks a rank of another launcher finds what it may use divided, and which it is:
// a rank that is bound, or alone, has it for itself.
struct Division {
  int rank, ranks;
};
Division division_of(const World& world, bool bound);

// What our launcher does for its ranks, done by a rank of another: pins the process to its share,
// unless that launcher has pinned it already, and returns the threads to use. A rank of ours, which
// has been told, gets 0. REQUIRES: no other thread, and nobody has asked for allowed_cpus. [main
// thread]
int take_share(const World& world);

// "0-3,8": CPUs as people write them.
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace orrery
