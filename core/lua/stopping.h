// SPDX-License-Identifier: Apache-2.0
//
// A job that is told to stop (launch/stop_signal.h) saves after the step under way and ends with
// code 75. It can where there is a place to save to: where the script has saved this run before,
// else in the run directory. Without one, signals end it as they end any program.
#pragma once

#include <string>

#include "run/run.h"

namespace orrery::lua {

// `saved`: where the script saved the run last, "" nowhere. Collective. Throws Error(ORR_RETRY)
// when any rank was told to stop and the checkpoint is written.
void stop_if_told(Run& run, const std::string& saved, const std::string& line);

}  // namespace orrery::lua
