// SPDX-License-Identifier: Apache-2.0
//
// Connects ranks to the store that they share. Our launcher serves it, or rank 0 if another
// launcher (mpirun, mpiexec, srun, torchrun) has started them.
//
// On one host, ranks connect to an abstract Unix socket. Both sides ask the kernel for the user of
// the process at the other end, before they read a byte: it must be their own. Between hosts, ranks
// connect to the address that the job is given. Both sides first prove to each other that they have
// the job's token; what follows is not encrypted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launch/environment.h"
#include "launch/socket.h"
#include "launch/store.h"

namespace orrery {

// Connects the ranks of world.job at this place. Rank 0 serves them until its store is destroyed.
// On one host the token is empty. If `launcher` is given, this rank reports its last error to that
// store. Throws Error: ORR_DEADLINE if rank 0 has not come, ORR_INVALID if the ranks do not belong
// to the same job, ORR_UNAVAILABLE if the process at the place does not know the token. REQUIRES:
// world.job is not empty. [main thread]
std::unique_ptr<Store> meet(const World& world, const Endpoint& place, const std::string& token,
                            int64_t deadline_ns, std::unique_ptr<Store> launcher = nullptr);

// Connects to the store that our launcher serves at this place for the ranks of this host.
std::unique_ptr<Store> meet_launcher(const World& world, const std::string& place,
                                     int64_t deadline_ns);

// The name of the socket at which the ranks of a job meet on one host.
std::string meeting_place(const World& world);
// MASTER_PORT as a number. Throws Error.
int port_number(const std::string& text);

}  // namespace orrery
