// SPDX-License-Identifier: Apache-2.0
//
// Stops a job that gets a signal to stop (launch/stop_signal.h): it finishes the current step, lets
// the script go on until it begins another or ends, saves a checkpoint and ends with code 75. It
// saves where the script has saved this run before, or else in the run directory. If there is
// neither, the signal ends the process. Before the first step SIGTERM ends the process at once, and
// SIGUSR1, by which --hosts brings a lost host back, is obeyed after that step.
#pragma once

#include <string>

#include "run/run.h"

namespace orrery::lua {

// The code of the Error that ends the script of a job that was told to stop, on all ranks.
constexpr int stopped = 77;

// The signal that any rank has got, or 0. Collective, to be called after a step. `saved`: where the
// script has saved the run; "": nowhere.
int told_to_stop(Run& run, const std::string& saved, const std::string& line);

}  // namespace orrery::lua
