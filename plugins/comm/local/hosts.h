// SPDX-License-Identifier: Apache-2.0
//
// Which ranks share a host, by what they themselves see of it: a launcher's counts are no proof
// that one can map the other's memory.
#pragma once

#include <orrery/comm.h>

#include <vector>

namespace local {

// For tests, ORRERY_TEST_HOSTS="aab" makes ranks of one host behave as if rank 0 and 1 were on one
// and rank 2 on another; it starts again where it is too short.
constexpr const char* test_hosts = "ORRERY_TEST_HOSTS";

// The host of each world rank, numbered in the order of their first ranks. Collective.
std::vector<int> find_hosts(const orr_comm_boot& boot);

}  // namespace local
