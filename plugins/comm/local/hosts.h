// SPDX-License-Identifier: Apache-2.0
//
// Which ranks share a host, by what they themselves see of it: a launcher's counts are no proof
// that one can map the other's memory.
#pragma once

#include <orrery/comm.h>

#include <vector>

namespace local {

// The host of each world rank, numbered in the order of their first ranks. Collective.
std::vector<int> find_hosts(const orr_comm_boot& boot);

}  // namespace local
