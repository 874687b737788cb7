// SPDX-License-Identifier: Apache-2.0
//
// Asks a lost host again and again, by the remote shell and the command `true`, whether it is back.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace orrery {

class HostProbe {
 public:
  // `command`: of the remote shell, with the host's name.
  explicit HostProbe(std::vector<std::string> command);
  ~HostProbe();  // ends the shell
  HostProbe(HostProbe&& other) noexcept;
  HostProbe& operator=(HostProbe&&) = delete;

  // Whether the host has answered. Asks it once in a deadline; never blocks. The caller looks after
  // each SIGCHLD, and once in a deadline. [main thread]
  bool is_back();

 private:
  using Clock = std::chrono::steady_clock;
  void ask();

  std::vector<std::string> command_;
  pid_t shell_ = -1;  // -1: none runs
  bool back_ = false;
  Clock::time_point next_;  // when it is asked again
};

}  // namespace orrery
