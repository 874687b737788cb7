// SPDX-License-Identifier: Apache-2.0
//
// `orrery run -n N`: starts the ranks of a job on this machine and sees it to its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> argv;  // of each rank; argv[0] is only its name
  std::string program;            // to execute; empty: the running one
  int threads = 0;                // per rank, as ORRERY_THREADS; 0: the CPUs divided
};

// Runs the job and returns its exit code: 0, or that of the first rank that failed by itself
// (128 + signal if it was killed). Rank 0 has this process's terminal; lines of the others get
// "[rank 3] " in front. The last line on stderr names the first failing rank and its error.
// SIGINT, SIGTERM, SIGHUP and SIGUSR1 are passed on; a second SIGINT or SIGTERM kills. No rank
// outlives this call or this process. [main thread]
int launch(const LaunchOptions& options);

}  // namespace orrery
