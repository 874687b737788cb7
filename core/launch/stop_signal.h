// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM and SIGUSR1, by which launchers and batch systems ask a job to stop: a rank notes them,
// so that a run can save a checkpoint before it ends. One stop often arrives several times:
// systemd, Slurm and `timeout` signal the launcher and its ranks, and the launcher passes its own
// on.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace orrery {

// Tells a second stop, which ends a job at once, from a repetition of the first.
class StopCounter {
 public:
  enum Kind { first, repeated, second };
  // What this signal is among those of its kind: a copy that our launcher has passed on and all
  // that come within a second of the first repeat it. [any thread, signal handlers]
  Kind take(int signal, bool is_copy);

 private:
  static_assert(std::atomic<int64_t>::is_always_lock_free);
  std::atomic<int64_t> first_[NSIG]{};  // when, on the monotonic clock; 0: none has come
};

// The variable in which a process that starts ranks tells them its own id.
constexpr const char* supervisor_variable = "ORRERY_SUPERVISOR";

// From this call on, the first such signal is only noted, and a second one of the same kind ends
// the process. Takes the signals back from a library that has taken them since an earlier call.
// [main thread]
void watch_stop_signals();
// The same of SIGUSR1 alone, for a script that has not begun to train: SIGTERM still ends it at
// once, also as process 1 of a namespace. [main thread]
void watch_user_signal();
// Ends the process by SIGUSR1 if that has been noted. [main thread]
void end_by_user_signal();
// The signal that has been noted, or 0. [any thread]
int stop_signal();

// Keeps both signals' handlers while a library is initialised that may install its own, as MPICH
// does for SIGUSR1, which waits meanwhile. [main thread]
class StopSignalsKept {
 public:
  StopSignalsKept();
  ~StopSignalsKept();
  StopSignalsKept(const StopSignalsKept&) = delete;

 private:
  struct sigaction term_ {
  }, user_{};
  sigset_t mask_{};
};

}  // namespace orrery
