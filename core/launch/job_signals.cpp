// SPDX-License-Identifier: Apache-2.0
#include "launch/job_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orrery {

JobSignals::JobSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) sigaddset(&set, s);
  fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd_ < 0) fail(ORR_FAILED, "launcher: no signalfd: {}", std::strerror(errno));
  sigprocmask(SIG_BLOCK, &set, &old_mask_);
}

JobSignals::~JobSignals() {
  while (next()) {
  }
  close(fd_);
  if (!told_) sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

int JobSignals::next() {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    told_ = true;
    return static_cast<int>(info.ssi_signo);
  }
  return 0;
}

}  // namespace orrery
