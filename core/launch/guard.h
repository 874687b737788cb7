// SPDX-License-Identifier: Apache-2.0
//
// Some launchers may end a job without naming the rank that was killed: MPICH's ends the other
// ranks in the same moment, and Open MPI's does not know ranks that have not reported to it yet.
// Under such a launcher each process that it starts is a guard: it starts the rank as its child,
// and names it if it is killed.
#pragma once

#include "launch/environment.h"

namespace orrery {

// Whether this process is to be a guard, and not the rank itself.
bool is_guard(const World& world);
// Runs this command again as the rank and returns its exit code, 128 + signal if it was killed.
// Signals are passed on; the rank does not outlive this process. [main thread]
int guard(const World& world);

}  // namespace orrery
