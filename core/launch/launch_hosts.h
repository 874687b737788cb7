// SPDX-License-Identifier: Apache-2.0
//
// `orrery run --hosts FILE`: a remote shell to each host starts this program there, which starts
// the host's ranks (launch.h). It reads its orders from stdin, because they contain the job's
// token, which must not be on a command line. Behind them come signals to pass on. When stdin ends,
// the launcher is gone, and the ranks are killed.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts_file.h"
#include "launch/launch.h"

namespace orrery {

struct HostsOptions {
  std::vector<JobHost> hosts;
  std::string remote_shell;       // a command; the host and a command line are appended
  std::vector<std::string> argv;  // of each rank
  int threads = 0;
  int restarts = 0;  // of all ranks, after a rank or a host was lost
  int min_ranks =
      0;  // a restart may leave out hosts that were lost, if so many ranks are left; 0: none
  std::string title;  // an argument of the command on the hosts, to be seen in lists of processes
};

std::string default_remote_shell();

// Runs the job as `launch` does. Rank 0 is the first rank of the first host; its stdin is empty.
int launch_hosts(const HostsOptions& options);

// Runs one host's part of a job, by orders that are read from stdin. [main thread]
int launch_as_host();

}  // namespace orrery
