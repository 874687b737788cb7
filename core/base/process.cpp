// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace orrery {
namespace {

constexpr int kSurvived = 77;  // the exit code of `perform`, which nothing else uses

[[noreturn]] void perform(const std::function<void()>& attempt) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, fd);
  try {
    attempt();
  } catch (...) {  // an exception does not end the process: the caller tries again and reports it
  }
  _exit(kSurvived);
}

}  // namespace

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

std::string end_of_trial(const std::function<void()>& attempt, int seconds) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) fail(ORR_FAILED, "cannot start a process ({})", std::strerror(errno));
  if (pid == 0) perform(attempt);
  const bool late = !wait_for(pid, seconds);
  if (late) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (late) return fmt::format("it took more than {} s", seconds);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code == kSurvived ? "" : describe_code(code);
}

}  // namespace orrery
