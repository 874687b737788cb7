// SPDX-License-Identifier: Apache-2.0
//
// Reads the file with the hosts of a job: one per line, "name [slots=N]"; # begins a comment.
#pragma once

#include <string>
#include <vector>

namespace orrery {

struct JobHost {
  std::string name;
  int slots = 1;      // ranks on it
  std::string where;  // "hosts.txt:3"
};

// Throws Error (ORR_INVALID) that names the file and its line.
std::vector<JobHost> read_hosts(const std::string& path);

}  // namespace orrery
