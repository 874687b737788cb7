// SPDX-License-Identifier: Apache-2.0
//
// Finds out whether an action ends the process, by doing it in a copy of the process.
#pragma once

#include <functional>
#include <string>

namespace orrery {

// Runs `attempt` in a copy of this process (fork). Returns "" if it returns there within `seconds`,
// else what happened: "signal 11 (Segmentation fault)", "exit code 1" or "it took more than 30 s".
// Exceptions and output of `attempt` are ignored. [main thread, no other running]
std::string end_of_trial(const std::function<void()>& attempt, int seconds);

}  // namespace orrery
