// SPDX-License-Identifier: Apache-2.0
//
// `orrery run --hosts FILE`: a remote shell to each host starts this program there, which starts
// the host's ranks (launch.h). What it has to know comes to its stdin, the job's token with it,
// never on a command line; then the signals to pass on. When stdin ends, the launcher has gone, and
// so do the ranks.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts_file.h"
#include "launch/launch.h"

namespace orrery {

struct HostsOptions {
  std::vector<JobHost> hosts;
  std::string remote_shell;       // its words; the host and one command follow
  std::vector<std::string> argv;  // of each rank
  int threads = 0;
  std::string title;  // of the command on the hosts, for people who look at processes
};

// The remote shell that is used unless another is named.
std::string default_remote_shell();

// Runs the job as `launch` does; rank 0 is the first of the first host, and reads nothing.
int launch_hosts(const HostsOptions& options);

// One host's part, as told on stdin. [main thread]
int launch_as_host();

}  // namespace orrery
