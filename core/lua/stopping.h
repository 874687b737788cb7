// SPDX-License-Identifier: Apache-2.0
//
// Stops a job that gets a signal to stop (launch/stop_signal.h): it saves a checkpoint after the
// current step and ends with code 75. It saves where the script has saved this run before, or else
// in the run directory. If there is neither, the signal ends the process as usual. Before the first
// step SIGTERM ends the process, and SIGUSR1 is obeyed after that step, as --hosts uses it to bring
// a lost host back.
#pragma once

#include <string>

#include "run/run.h"

namespace orrery::lua {

// `saved`: the directory in which the script has last saved the run; "": none. `in_series`: it gets
// a directory for each step that is saved. Collective. If any
// rank has got such a signal, writes the checkpoint and throws Error(ORR_RETRY).
void stop_if_told(Run& run, const std::string& saved, bool in_series, const std::string& line);

}  // namespace orrery::lua
