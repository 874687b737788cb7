// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of several hosts get their connections: each listens at the address under which the
// store has seen it, for as long as it takes the higher ranks to come, and lets in who proves to
// have the secret that the store gave to all.
#pragma once

#include <orrery/comm.h>

#include <vector>

namespace local {

// The connections with one other rank. Sockets do not block.
struct Line {
  int notes = -1;
  int data = -1;  // between hosts only
};

// By world rank. Collective. Throws orr::Error naming who has not come, and where it was expected.
std::vector<Line> connect_all(const orr_comm_boot& boot, const std::vector<int>& host_of);

}  // namespace local
