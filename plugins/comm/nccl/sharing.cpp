// SPDX-License-Identifier: Apache-2.0
#include "sharing.h"

#include <cstdlib>
#include <string>

#include <orrery/sdk/plugin.hpp>

namespace nccl {
namespace {

constexpr const char* variable = "ORRERY_NCCL_SHARE_GPU";

bool switched_on() {
  const char* given = std::getenv(variable);
  const std::string value = given ? given : "";
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  throw orr::Error(ORR_INVALID, std::string(variable) + " is '" + value +
                                    "': 1 lets ranks share a GPU, for tests; 0 does not");
}

}  // namespace

bool share_gpus(const orr_comm_boot& boot) {
  if (!switched_on()) return false;
  if (boot.local_size != boot.world_size)
    throw orr::Error(ORR_INVALID, std::string(variable) +
                                      "=1 is for ranks of one host, whose sockets are loopback's; "
                                      "this host has " +
                                      std::to_string(boot.local_size) + " ranks of " +
                                      std::to_string(boot.world_size));
  const std::string host = "orrery-rank-" + std::to_string(boot.rank);
  setenv("NCCL_HOSTID", host.c_str(), 0);
  setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  setenv("NCCL_IB_DISABLE", "1", 0);
  return true;
}

}  // namespace nccl
