// SPDX-License-Identifier: Apache-2.0
#include "launch/host_probe.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "launch/environment.h"

namespace orrery {

HostProbe::HostProbe(std::vector<std::string> command)
    : command_(std::move(command)), next_(Clock::now() + std::chrono::nanoseconds(deadline_ns())) {}

HostProbe::HostProbe(HostProbe&& other) noexcept
    : command_(std::move(other.command_)),
      shell_(std::exchange(other.shell_, -1)),
      back_(other.back_),
      next_(other.next_) {}

HostProbe::~HostProbe() {
  if (shell_ < 0) return;
  kill(shell_, SIGKILL);
  waitpid(shell_, nullptr, 0);
}

bool HostProbe::is_back() {
  int status = 0;
  if (shell_ > 0 && waitpid(shell_, &status, WNOHANG) == shell_) {
    shell_ = -1;
    back_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (!back_ && shell_ < 0 && Clock::now() >= next_) ask();
  return back_;
}

void HostProbe::ask() {
  next_ = Clock::now() + std::chrono::nanoseconds(deadline_ns());
  std::vector<char*> argv;
  for (std::string& each : command_) argv.push_back(each.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  if (posix_spawnp(&shell_, argv[0], &files, &how, argv.data(), environ) != 0) shell_ = -1;
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
}

}  // namespace orrery
