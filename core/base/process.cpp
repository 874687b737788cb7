// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orrery {

bool wait_for(pid_t pid, int seconds) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) fail(ORR_FAILED, "cannot watch a process ({})", std::strerror(errno));
  pollfd event{fd, POLLIN, 0};
  int n;
  do n = poll(&event, 1, seconds * 1000);
  while (n < 0 && errno == EINTR);
  close(fd);
  return n > 0;
}

std::string describe_code(int code) {
  if (code <= 128) return fmt::format("exit code {}", code);
  return fmt::format("signal {} ({})", code - 128, strsignal(code - 128));
}

}  // namespace orrery
