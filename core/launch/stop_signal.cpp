// SPDX-License-Identifier: Apache-2.0
#include "launch/stop_signal.h"

#include <signal.h>

#include <atomic>

namespace orrery {
namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

void watch_stop_signals() {
  static bool watching = false;
  if (watching) return;
  watching = true;
  struct sigaction action {};
  action.sa_handler = [](int signal) { noted = signal; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (int signal : {SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

int stop_signal() { return noted; }

}  // namespace orrery
