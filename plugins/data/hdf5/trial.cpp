// SPDX-License-Identifier: Apache-2.0
#include "trial.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "library.h"

namespace data {
namespace {

constexpr unsigned kMostSeconds = 60;

// Closes nothing, since the lock of a Turn belongs to the other process's thread.
[[noreturn]] void open_all(const std::string& path, const std::vector<std::string>& datasets) {
  for (const int fatal : {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGALRM})
    signal(fatal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_DUMPABLE, 0);  // no core file
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kMostSeconds);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  for (const std::string& dataset : datasets) {
    const hid_t set = file < 0 ? file : H5Dopen2(file, dataset.c_str(), H5P_DEFAULT);
    if (set < 0) continue;
    H5Dget_create_plist(set);
    H5Dget_type(set);
    H5Dget_space(set);
  }
  _exit(0);
}

}  // namespace

void try_apart(const std::string& path, const std::vector<std::string>& datasets) {
  const pid_t child = fork();
  if (child == 0) open_all(path, datasets);
  if (child < 0)
    fail(ORR_FAILED, path, ": cannot be opened in a process of its own: ", std::strerror(errno));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) return;
  if (WTERMSIG(status) == SIGALRM)
    refuse(path, ": HDF5 has not opened it within ", kMostSeconds, " s; it is damaged");
  refuse(path, ": opening it ends HDF5 by signal ", WTERMSIG(status), " (",
         strsignal(WTERMSIG(status)), "); it is damaged");
}

}  // namespace data
