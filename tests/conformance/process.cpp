// SPDX-License-Identifier: Apache-2.0
#include "conformance/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/process.h"
#include "launch/launch.h"
#include "launch/wire.h"

namespace orrery::judge {
namespace {

int memory_file(const char* name) {
  const int made = memfd_create(name, MFD_CLOEXEC);
  const int fd = fcntl(made, F_DUPFD_CLOEXEC, 16);  // above the numbers that the child gives away
  close(made);
  if (fd < 0) fail(ORR_FAILED, "cannot make a file in memory ({})", std::strerror(errno));
  fcntl(fd, F_SETFL, O_APPEND);  // several processes write
  return fd;
}

std::string take(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

[[noreturn]] void become(const std::string& program, std::vector<char*> argv,
                         const std::vector<std::string>& variables, const std::string& job,
                         int output, int verdict) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("ORRERY_PIN", "none", 1);  // bits are judged, no speed: whoever else works here goes on
  setenv("ORRERY_NO_DIR", "1", 1);
  setenv(wire::job_variable, job.c_str(), 1);
  for (const std::string& entry : variables) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  dup2(output, 1);
  dup2(output, 2);
  dup2(verdict, verdict_fd);
  execv(program.c_str(), argv.data());
  _exit(127);
}

}  // namespace

Ended run_orrery(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                 int seconds) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char*> argv = {const_cast<char*>("orrery")};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "orrery";
  const int output = memory_file("output");
  const int verdict = memory_file("verdict");
  const std::string job = new_job_name();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) fail(ORR_FAILED, "cannot start a process ({})", std::strerror(errno));
  if (pid == 0) become(program, argv, variables, job, output, verdict);
  setpgid(pid, pid);
  Ended ended;
  ended.late = !wait_for(pid, seconds);
  kill(-pid, SIGKILL);  // and what it has started
  int status = 0;
  waitpid(pid, &status, 0);
  remove_leavings(job);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.output = take(output);
  ended.verdict = take(verdict);
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ended;
}

}  // namespace orrery::judge
