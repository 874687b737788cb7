// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a communicator on several hosts get their connections: each listens at the
// address under which the store has seen it, for as long as it takes the higher ranks to come, and
// lets in who proves to have the secret that the store gave to all.
#pragma once

#include <orrery/comm.h>

#include <string>
#include <vector>

namespace local {

// A connected socket for each of these world ranks but this one, by world rank, else -1; they do
// not block. Collective over the ranks, which call it by one name that no other has had. Throws
// orr::Error naming who has not come, and where it was expected.
std::vector<int> connect_all(const orr_comm_boot& boot, const std::vector<int>& ranks,
                             const std::string& name);

}  // namespace local
