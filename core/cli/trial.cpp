// SPDX-License-Identifier: Apache-2.0
#include "cli/trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/process.h"

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
