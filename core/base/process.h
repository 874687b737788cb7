// SPDX-License-Identifier: Apache-2.0
//
// Waiting for child processes, describing how they ended, and finding out whether an action ends a
// process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace orrery {

// Whether the child ends within `seconds`. The caller must still reap it (waitpid).
bool wait_for(pid_t child, int seconds);

// "signal 11 (Segmentation fault)" for 128 + 11, or "exit code 1".
std::string describe_code(int code);

// Runs `attempt` in a copy of this process (fork). Returns "" if it returns there within `seconds`,
// else what happened: "signal 11 (Segmentation fault)", "exit code 1" or "it took more than 30 s".
// Exceptions and output of `attempt` are ignored. [main thread, no other running]
std::string end_of_trial(const std::function<void()>& attempt, int seconds);

}  // namespace orrery
