// SPDX-License-Identifier: Apache-2.0
#include "launch/stop_signal.h"

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace orrery {
namespace {

constexpr int64_t second_ns = 1'000'000'000;

StopCounter counter;
std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);

// The parent, if it is the launcher or guard that has started this process; else 0.
pid_t supervisor() {
  const char* named = std::getenv(supervisor_variable);
  const pid_t parent = getppid();
  return named && std::atoi(named) == parent ? parent : 0;
}
std::atomic<pid_t> parent_of_rank{0};

// The kernel ends process 1 of a namespace by no signal that it has no handler for.
void end_by(int signal) {
  if (getpid() == 1) _exit(128 + signal);
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
}

void note(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_copy = info->si_code == SI_USER && info->si_pid == parent_of_rank;
  if (counter.take(signal, is_copy && info->si_pid > 0) == StopCounter::second) end_by(signal);
  noted = signal;
  errno = error;
}

void watch(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  if (now.sa_sigaction != note) {
    parent_of_rank = supervisor();
    struct sigaction action {};
    action.sa_sigaction = note;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigaction(signal, &action, nullptr);
  }
  sigset_t set;  // the launcher has blocked SIGUSR1 until now
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

StopCounter::Kind StopCounter::take(int signal, bool is_copy) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t ns = now.tv_sec * second_ns + now.tv_nsec;
  int64_t begun = 0;
  if (first_[signal].compare_exchange_strong(begun, ns)) return first;
  return is_copy || ns - begun < second_ns ? repeated : second;
}

void watch_user_signal() {
  watch(SIGUSR1);
  if (getpid() != 1) return;
  for (int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler == SIG_DFL) signal(number, end_by);
  }
}

void watch_stop_signals() {
  watch(SIGTERM);
  watch_user_signal();
}

void end_by_user_signal() {
  if (noted == SIGUSR1) end_by(SIGUSR1);
}

int stop_signal() { return noted; }

StopSignalsKept::StopSignalsKept() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &mask_);
  sigaction(SIGTERM, nullptr, &term_);
  sigaction(SIGUSR1, nullptr, &user_);
}

StopSignalsKept::~StopSignalsKept() {
  sigaction(SIGTERM, &term_, nullptr);
  sigaction(SIGUSR1, &user_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace orrery
