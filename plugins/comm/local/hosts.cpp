// SPDX-License-Identifier: Apache-2.0
#include "hosts.h"

#include <algorithm>
#include <cstdlib>
#include <orrery/sdk/plugin.hpp>
#include <string>

#include "../shared/mapping.h"

namespace local {

std::vector<int> find_hosts(const orr_comm_boot& boot) {
  std::vector<int> host_of(boot.world_size, 0);
  if (boot.local_size == boot.world_size && !std::getenv(shared::test_hosts)) return host_of;
  const std::string own = shared::host_identity(boot.rank), key = "comm.local/host/";
  orr::check(
      boot.put(boot.store, (key + std::to_string(boot.rank)).c_str(), own.data(), own.size()));
  const uint64_t all_bytes = host_of.size() * sizeof(int);
  uint64_t bytes = 0;
  if (boot.rank > 0) {
    orr::check(boot.get(boot.store, "comm.local/hosts", host_of.data(), all_bytes, &bytes,
                        boot.deadline_ns));
    if (bytes != all_bytes) throw orr::Error(ORR_FAILED, "rank 0 forms a world of another size");
    return host_of;
  }
  std::vector<std::string> known;
  for (int r = 0; r < boot.world_size; ++r) {
    char name[256];
    orr::check(boot.get(boot.store, (key + std::to_string(r)).c_str(), name, sizeof name, &bytes,
                        boot.deadline_ns));
    const auto at = std::find(known.begin(), known.end(), std::string(name, bytes));
    host_of[r] = static_cast<int>(at - known.begin());
    if (at == known.end()) known.emplace_back(name, bytes);
  }
  orr::check(boot.put(boot.store, "comm.local/hosts", host_of.data(), all_bytes));
  return host_of;
}

}  // namespace local
