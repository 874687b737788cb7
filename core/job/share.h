// SPDX-License-Identifier: Apache-2.0
//
// Which CPUs of a host are a rank's own.
#pragma once

#include <vector>

#include "job/environment.h"

namespace orrery {

// The part of `cpus` of one of `ranks`; empty where there are fewer CPUs than ranks.
std::vector<int> cpu_share(const std::vector<int>& cpus, int rank, int ranks);
// Compute threads of a rank that shares `cpus` with others.
int thread_share(const std::vector<int>& cpus, int ranks);

// What our launcher does for its ranks, done by a rank of another: pins the process to its share,
// unless that launcher has pinned it already, and returns the threads to use; 0: as many as CPUs.
// REQUIRES: no other thread, and nobody has asked for allowed_cpus. [main thread]
int take_share(const World& world);

}  // namespace orrery
