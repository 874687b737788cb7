// SPDX-License-Identifier: Apache-2.0
//
// `orrery run -n N`: starts the ranks of a job on this machine and sees it to its end. The ranks
// may be some of a larger job's: then a launcher elsewhere has started this one on each host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// This host's part in a job on several.
struct HostPart {
  std::string host;  // as the hosts file calls it
  std::string job;   // name of the whole
  int first_rank = 0, world_size = 1;
  // Signals to pass on arrive here, one number per line; the ranks are killed when it ends.
  int control = -1;
};

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> argv;  // of each rank; argv[0] is only its name
  std::string program;            // to execute; empty: the running one
  int threads = 0;                // per rank, as ORRERY_THREADS; 0: the CPUs divided
  std::optional<HostPart> part = std::nullopt;
};

// Runs the job and returns its exit code: 0, or that of the first rank that failed by itself
// (128 + signal if it was killed). Rank 0 has this process's terminal; lines of the others get
// "[rank 3] " in front. The last line on stderr names the first failing rank and its error.
// Signals are passed on as in supervisor.h. No rank outlives this call or this process, nor does
// what bears the job's name in /dev/shm outlive the call. [main thread]
int launch(const LaunchOptions& options);

// What another launcher has put into the environment is not for our ranks.
bool is_foreign(std::string_view entry);
// A name that no other job has.
std::string new_job_name();

// A launcher of a larger job's part begins with a line of this on stderr, and the last line there
// with this: the launcher that has started it says it at the end.
constexpr char verdict_mark = '\x1e';

}  // namespace orrery
