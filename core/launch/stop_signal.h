// SPDX-License-Identifier: Apache-2.0
//
// Notes SIGTERM and SIGUSR1, by which launchers and batch systems ask a job to stop, so that a run
// can save a checkpoint before it ends.
#pragma once

namespace orrery {

// From this call on, the first such signal is only noted. A second one of the same kind has its
// default effect. May be called again. [main thread]
void watch_stop_signals();
// The same of SIGUSR1 alone, for a script that has not begun to train: SIGTERM still ends it at
// once. [main thread]
void watch_user_signal();
// Ends the process by SIGUSR1 if that has been noted. [main thread]
void end_by_user_signal();
// The signal that has been noted, or 0. [any thread]
int stop_signal();

}  // namespace orrery
