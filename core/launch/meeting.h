// SPDX-License-Identifier: Apache-2.0
//
// How ranks find each other that another launcher (mpirun, mpiexec, srun, torchrun) has started:
// rank 0 serves the store.
//
// On one host it does so on an abstract Unix socket, named by user and job, so that nothing is left
// behind whoever is killed when. Only processes of the same user meet: each side asks the kernel
// whose process the other is before it reads a byte.
//
// Between hosts it listens at the one address that the job is given for it. Both sides prove to
// each other that they have the job's token before anything else is said; what follows is not
// encrypted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launch/environment.h"
#include "launch/store.h"

namespace orrery {

// Joins the ranks of world.job; rank 0 serves them until its store is destroyed. Throws Error:
// ORR_DEADLINE when rank 0 has not come, ORR_INVALID when the ranks do not belong together.
// REQUIRES: all ranks on this host, world.job not empty. [main thread]
std::unique_ptr<Store> meet(const World& world, int64_t deadline_ns);

// The same between hosts, at world.address and world.port. ORR_UNAVAILABLE also when who answers
// there does not know the token. REQUIRES: neither is empty, nor the token. [main thread]
std::unique_ptr<Store> meet_afar(const World& world, const std::string& token, int64_t deadline_ns);

// The name under which the ranks of a job meet on one host, without its leading NUL; for messages,
// tests and whatever is named after the job.
std::string meeting_place(const World& world);

}  // namespace orrery
