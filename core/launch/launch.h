// SPDX-License-Identifier: Apache-2.0
//
// `orrery run -n N`: starts the ranks of a job on this machine and supervises them to its end. With
// --hosts they are only this host's part of the job: a launcher on another host has then started a
// launcher like this on each host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// This host's part of a job on several hosts.
struct HostPart {
  std::string host;  // its name in the hosts file
  std::string job;   // the name of the whole job
  int first_rank = 0, world_size = 1;
  // A file descriptor from which signals to pass on are read, one number per line. At its end the
  // ranks are killed.
  int control = -1;
};

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> argv;  // of each rank; argv[0] is only its name
  std::string program;            // to execute; empty: the running one
  int threads = 0;                // per rank, as ORRERY_THREADS; 0: its share of the CPUs
  int restarts = 0;               // of all ranks, after one was lost (restarts.h)
  std::optional<HostPart> part = std::nullopt;
};

// Runs the job, again after it has lost a rank if it may, and returns its exit code: 0, or that of
// the first rank that failed by itself (128 + signal if it was killed). Rank 0 has this process's
// terminal, or writes through this process where stdout or stderr is a pipe; lines of the others
// get "[rank 3] " in front. The last line on stderr names the first
// failing rank and its error. Signals are passed on as in supervisor.h. No rank outlives this call
// or this process, and no file of the job in /dev/shm outlives the call. [main thread]
int launch(const LaunchOptions& options);

// Whether another launcher has set this environment variable; our ranks do not get it.
bool is_foreign(std::string_view entry);
// A name that no other job has.
std::string new_job_name();
// Removes the job's files in shared memory, which processes that were killed have left.
// REQUIRES: `job` is such a name.
void remove_leavings(const std::string& job);

// The launcher of a host's part prints a line with only this character on stderr when it begins.
// The line that says how the part has failed begins with it too: the launcher that has started it
// keeps that line, and prints it at the end.
constexpr char verdict_mark = '\x1e';

}  // namespace orrery
