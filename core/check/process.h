// SPDX-License-Identifier: Apache-2.0
//
// This program again, in a process group of its own, until it ends or its time is over.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace orrery::judge {

struct Ended {
  int code = 0;         // exit code, or 128 + signal
  bool late = false;    // killed because its time was over
  std::string output;   // what it and its children printed
  std::string verdict;  // what it wrote to `verdict_fd`
  double seconds = 0;
};

constexpr int verdict_fd = 3;

// `variables` are added to the environment, "NAME=value"; ORRERY_PLUGIN_PATH among them replaces
// the user's. Nothing that the program has started outlives the call.
Ended run_self(const std::vector<std::string>& words, const std::vector<std::string>& variables,
               int seconds);

// Whether the child ends in time; it is then still to be waited for.
bool wait_for(pid_t child, int seconds);

// "signal 11 (Segmentation fault)" or "exit code 1".
std::string describe_code(int code);

}  // namespace orrery::judge
