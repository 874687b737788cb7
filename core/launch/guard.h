// SPDX-License-Identifier: Apache-2.0
//
// A rank of a launcher that may end a job without a word on which rank was killed: MPICH's ends the
// others in the same moment, Open MPI's knows no rank that has not reported to it yet. The process
// that such a launcher has started starts the rank as its child, and names it.
#pragma once

#include "launch/environment.h"

namespace orrery {

// Whether this process is to guard a rank rather than to be it.
bool is_guard(const World& world);
// Runs this very command again as the rank and returns its exit code, 128 + signal if it was
// killed. Signals are passed on; the rank does not outlive this process. [main thread]
int guard(const World& world);

}  // namespace orrery
