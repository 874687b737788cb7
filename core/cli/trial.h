// SPDX-License-Identifier: Apache-2.0
//
// Whether something ends the process that does it, found out in another one.
#pragma once

#include <functional>
#include <string>

namespace orrery {

// Runs `attempt` in a copy of this process. "" if it comes back there within `seconds`, else what
// happened: "signal 11 (Segmentation fault)", "exit code 1" or "it took more than 30 s". What
// `attempt` throws, returns by or prints is not looked at. [main thread, no other running]
std::string end_of_trial(const std::function<void()>& attempt, int seconds);

}  // namespace orrery
