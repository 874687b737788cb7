// SPDX-License-Identifier: Apache-2.0
//
// What a launcher shows to the outside for all starts of its job: the signals that come to it, and
// its output.
#pragma once

#include <poll.h>

#include <chrono>
#include <string>
#include <vector>

#include "launch/job_signals.h"
#include "launch/outlet.h"

namespace orrery {

struct Front {
  JobSignals signals;
  Outlet out{1}, err{2};

  // Prints a line on stderr, as soon as its reader takes it.
  void say(const std::string& line);
  void flush();
  void hurry(bool on);
  // Adds the descriptors of signals, and of output that waits.
  void add_to(std::vector<pollfd>& fds) const;
  // Waits for a signal, and writes what waits meanwhile. The signal that came within that time,
  // or 0.
  int wait_for_signal(std::chrono::milliseconds patience);
  // Writes the rest, once all ranks have ended. A reader that takes nothing is waited for until a
  // signal comes, and for 5 s if the job was told to end. Returns `code`.
  int finish(int code);
};

}  // namespace orrery
