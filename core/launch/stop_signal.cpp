// SPDX-License-Identifier: Apache-2.0
#include "launch/stop_signal.h"

#include <signal.h>

#include <atomic>
#include <utility>

namespace orrery {
namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);

void watch(int signal, bool& watching) {
  if (std::exchange(watching, true)) return;
  struct sigaction action {};
  action.sa_handler = [](int number) { noted = number; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(signal, &action, nullptr);
  sigset_t set;  // the launcher has blocked SIGUSR1 until now
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

void watch_user_signal() {
  static bool watching = false;
  watch(SIGUSR1, watching);
}

void watch_stop_signals() {
  static bool watching = false;
  watch(SIGTERM, watching);
  watch_user_signal();
}

void end_by_user_signal() {
  if (noted != SIGUSR1) return;
  signal(SIGUSR1, SIG_DFL);
  raise(SIGUSR1);
}

int stop_signal() { return noted; }

}  // namespace orrery
