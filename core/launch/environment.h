// SPDX-License-Identifier: Apache-2.0
//
// Who am I in the job: rank and size as some launcher has put them into the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this host
  std::string source = "single process";
  std::string job;  // names the job among this user's on this host; "": the launcher does not say
  std::string address;  // where ranks on several hosts meet rank 0; "": the launcher does not say
  std::string port;
  bool launcher_is_mute = false;  // at times ends a job without naming the rank that was killed
};

using GetEnv = std::function<const char*(const char*)>;

// Reads, in this order, our own launcher's variables, torchrun's, Open MPI's, hydra's (MPICH, Intel
// MPI) and those of a Slurm step; without any it is a world of one. Throws Error naming the
// variables when a pair is half set, is no valid rank and size, or disagrees with another
// launcher's.
World detect();
World detect(const GetEnv& env);

// The default of every wait between ranks: ORRERY_DEADLINE in seconds, else 30 s.
int64_t deadline_ns();

}  // namespace orrery
