// SPDX-License-Identifier: Apache-2.0
//
// Which ranks share a host.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <orrery/sdk/plugin.hpp>
#include <string>

#include "family.h"

namespace local {
namespace {

std::string link_of(const char* path) {
  char text[64];
  const ssize_t n = readlink(path, text, sizeof text);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

// The running kernel, and the namespaces in which processes and addresses are found: two ranks of
// equal text can open each other's memory, if they are one user's.
std::string host_identity(int rank) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::string name = boot + link_of("/proc/self/ns/pid") + link_of("/proc/self/ns/net");
  const char* pretended = std::getenv(test_hosts);
  if (pretended && *pretended)
    name += pretended[static_cast<size_t>(rank) % std::string(pretended).size()];
  return name;
}

}  // namespace

std::vector<int> find_hosts(const orr_comm_boot& boot) {
  std::vector<int> host_of(boot.world_size, 0);
  if (boot.local_size == boot.world_size && !std::getenv(test_hosts)) return host_of;
  const std::string own = host_identity(boot.rank), key = "comm.local/host/";
  orr::check(
      boot.put(boot.store, (key + std::to_string(boot.rank)).c_str(), own.data(), own.size()));
  std::vector<std::string> known;
  for (int r = 0; r < boot.world_size; ++r) {
    char name[256];
    uint64_t bytes = 0;
    orr::check(boot.get(boot.store, (key + std::to_string(r)).c_str(), name, sizeof name, &bytes,
                        boot.deadline_ns));
    const auto at = std::find(known.begin(), known.end(), std::string(name, bytes));
    host_of[r] = static_cast<int>(at - known.begin());
    if (at == known.end()) known.emplace_back(name, bytes);
  }
  return host_of;
}

}  // namespace local
