// SPDX-License-Identifier: Apache-2.0
//
// The signals that come to a launcher, for all starts of its job. They wait in a descriptor from
// before the first start until the process ends, so that none of them ends it on the way.
#pragma once

#include <signal.h>

namespace orrery {

class JobSignals {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE and SIGCHLD. [main thread]
  JobSignals();
  // Lets signals act again, unless the job was told to end: this process is about to end with the
  // job's code, and what still comes must not replace that code by its own.
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;

  // Readable when a signal has come.
  int fd() const { return fd_; }
  // The next one that has come, other than SIGCHLD; 0: there is none. The job is told to end by it.
  int next();
  // Whether the job was told to end.
  bool told() const { return told_; }
  // Notes that it was told so in another way.
  void tell() { told_ = true; }

 private:
  int fd_ = -1;
  bool told_ = false;
  sigset_t old_mask_{};
};

}  // namespace orrery
