// SPDX-License-Identifier: Apache-2.0
#include "cli/trial.h"

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

constexpr int kSurvived = 77;  // what only `perform` exits with

[[noreturn]] void perform(const std::function<void()>& attempt) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, fd);
  try {
    attempt();
  } catch (...) {  // an error is an answer: this process asks again and reports it
  }
  _exit(kSurvived);
}

}  // namespace

std::string end_of_trial(const std::function<void()>& attempt, int seconds) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) fail(ORR_FAILED, "cannot start a process ({})", std::strerror(errno));
  if (pid == 0) perform(attempt);
  pollfd end{static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
  if (end.fd < 0) fail(ORR_FAILED, "cannot watch a process ({})", std::strerror(errno));
  int ready;
  do ready = poll(&end, 1, seconds * 1000);
  while (ready < 0 && errno == EINTR);
  close(end.fd);
  if (ready <= 0) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (ready <= 0) return fmt::format("it took more than {} s", seconds);
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == kSurvived) return "";
  return fmt::format("it exited with {}", WEXITSTATUS(status));
}

}  // namespace orrery
