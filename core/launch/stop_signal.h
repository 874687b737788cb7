// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM and SIGUSR1 as the wish that a job stop where it can be continued: what launchers and
// batch systems send before they take a machine away.
#pragma once

namespace orrery {

// From now on the first such signal is only noted; a second of the same kind acts as ever. May be
// called again. [main thread]
void watch_stop_signals();
// The signal that has come since, or 0. [any thread]
int stop_signal();

}  // namespace orrery
