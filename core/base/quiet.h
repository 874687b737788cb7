// SPDX-License-Identifier: Apache-2.0
//
// Blocks all signals during its life. Threads that start meanwhile inherit that, so that the main
// thread gets the signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace orrery {

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;

 private:
  sigset_t old_;
};

}  // namespace orrery
