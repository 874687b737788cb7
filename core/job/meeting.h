// SPDX-License-Identifier: Apache-2.0
//
// How ranks find each other that another launcher (mpirun, mpiexec, srun, torchrun) has started on one
// host: rank 0 serves the store on an abstract Unix socket, named by user and job, so that nothing is
// left behind whoever is killed when. Only processes of the same user meet: each side asks the kernel
// whose process the other is before it reads a byte.
#pragma once

#include <cstdint>
#include <memory>

#include "job/environment.h"
#include "job/store.h"

namespace orrery {

// Joins the ranks of world.job; rank 0 serves them until its store is destroyed. Throws Error:
// ORR_DEADLINE when rank 0 has not come, ORR_INVALID when the ranks do not belong together.
// REQUIRES: all ranks on this host, world.job not empty. [main thread]
std::unique_ptr<Store> meet(const World& world, int64_t deadline_ns);

// The name under which the ranks of a job meet, without its leading NUL; for messages and tests.
std::string meeting_place(const World& world);

}  // namespace orrery
