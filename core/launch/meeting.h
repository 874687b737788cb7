// SPDX-License-Identifier: Apache-2.0
//
// How ranks get the store that they share: our launcher serves it, or rank 0 where another launcher
// (mpirun, mpiexec, srun, torchrun) has started them.
//
// On one host they meet at a name that only this host knows. Only processes of the same user do:
// each side asks the kernel whose process the other is before it reads a byte. Between hosts they
// meet at the one address that the job is given for it. Both sides prove to each other that they
// have the job's token before anything else is said; what follows is not encrypted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launch/environment.h"
#include "launch/socket.h"
#include "launch/store.h"

namespace orrery {

// Joins the ranks of world.job at this place; rank 0 serves them until its store is destroyed. On
// one host there is no token. `launcher` hears what this rank ends with, where it is given. Throws
// Error: ORR_DEADLINE when rank 0 has not come, ORR_INVALID when the ranks do not belong together,
// ORR_UNAVAILABLE also when who answers there does not know the token. REQUIRES: world.job is not
// empty. [main thread]
std::unique_ptr<Store> meet(const World& world, const Endpoint& place, const std::string& token,
                            int64_t deadline_ns, std::unique_ptr<Store> launcher = nullptr);

// The store that our launcher serves at this place to the ranks of this host.
std::unique_ptr<Store> meet_launcher(const World& world, const std::string& place,
                                     int64_t deadline_ns);

// The name under which the ranks of a job meet on one host; for messages, tests and whatever is
// named after the job.
std::string meeting_place(const World& world);
// MASTER_PORT as a number. Throws Error.
int port_number(const std::string& text);

}  // namespace orrery
