// SPDX-License-Identifier: Apache-2.0
//
// Stops a job that gets a signal to stop (launch/stop_signal.h): it saves a checkpoint after the
// current step and ends with code 75. It saves where the script has saved this run before, or else
// in the run directory. If there is neither, the signal ends the process. Before the first step
// SIGTERM ends the process at once, and SIGUSR1, by which --hosts brings a lost host back, is
// obeyed after that step.
#pragma once

#include <string>

#include "run/run.h"

namespace orrery::lua {

// `saved`: the directory in which the script has last saved the run; "": none. `in_series`: it gets
// a directory for each step that is saved. Collective. If any
// rank has got such a signal, writes the checkpoint and throws Error(ORR_RETRY).
void stop_if_told(Run& run, const std::string& saved, bool in_series, const std::string& line);

}  // namespace orrery::lua
