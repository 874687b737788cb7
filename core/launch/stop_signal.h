// SPDX-License-Identifier: Apache-2.0
//
// Notes SIGTERM and SIGUSR1, by which launchers and batch systems ask a job to stop, so that a run
// can save a checkpoint before it ends.
#pragma once

namespace orrery {

// From this call on, the first such signal is only noted. A second one of the same kind has its
// default effect. May be called again. [main thread]
void watch_stop_signals();
// The signal that has come since that call, or 0. [any thread]
int stop_signal();

}  // namespace orrery
