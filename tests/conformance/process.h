// SPDX-License-Identifier: Apache-2.0
//
// The program `orrery` beside this one, in a process group of its own, until it ends or its time is
// over.
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
Ended run_orrery(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                 int seconds);

}  // namespace orrery::judge
