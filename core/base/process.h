// SPDX-License-Identifier: Apache-2.0
//
// Waiting for child processes, and describing how they ended.
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

// Whether the child ends within `seconds`. The caller must still reap it (waitpid).
bool wait_for(pid_t child, int seconds);

// "signal 11 (Segmentation fault)" for 128 + 11, or "exit code 1".
std::string describe_code(int code);

}  // namespace orrery
