// SPDX-License-Identifier: Apache-2.0
//
// This process's place in the job: rank and size, from the variables that a launcher sets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this host
  std::string source = "single process";
  // A name that no other job of this user on this host has; "": the launcher sets none.
  std::string job;
  // Where ranks on several hosts connect to rank 0; "": the launcher sets none.
  std::string address, port;
  std::string boot;               // the plugin by which the ranks meet (launch/boot.h); "": none
  bool launcher_is_mute = false;  // it may end a job without naming the rank that was killed
};

using GetEnv = std::function<const char*(const char*)>;

// Looks, in this order, for the variables of our own launcher, torchrun, Open MPI, hydra (MPICH,
// Intel MPI) and a Slurm step; without any, this is a world of one rank. Throws Error that names
// the variables if only one of a pair is set, they are no valid rank and size, or they contradict
// those of another launcher.
World detect(const GetEnv& env);
// The same of this process, with what boot plugins add; a guard (launch/guard.h) asks none, for it
// is no rank. [main thread]
World detect();

// A job keeps its name through all its starts, which count from 1 (--restarts). Without a launcher
// of ours the name is "" and the start 0.
struct JobStart {
  std::string job;
  int start = 0;
};
JobStart job_start();
// For the ranks that this launcher starts from now on.
void set_job_start(const JobStart& start);

// The deadline of every wait between ranks: ORRERY_DEADLINE in seconds, else 30 s.
int64_t deadline_ns();

}  // namespace orrery
