// SPDX-License-Identifier: Apache-2.0
//
// How child processes end.
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

// Whether the child ends within `seconds`; it is then still to be waited for.
bool wait_for(pid_t child, int seconds);

// "signal 11 (Segmentation fault)" for 128 + 11, or "exit code 1".
std::string describe_code(int code);

}  // namespace orrery
