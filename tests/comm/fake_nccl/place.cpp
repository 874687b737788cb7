// SPDX-License-Identifier: Apache-2.0
#include "place.h"

#include <cstdlib>
#include <functional>

namespace fake {
namespace {

std::string value_of(const char* variable) {
  const char* set = std::getenv(variable);
  return set ? set : "";
}

std::string why_unreachable() {
  if (value_of("NCCL_SOCKET_IFNAME") != "lo")
    return "Bootstrap : no socket interface but lo is connected";
  if (value_of("NCCL_IB_DISABLE") != "1") return "Call to ibv_modify_qp failed";
  return "";
}

}  // namespace

const Place& place() {
  static const Place found{std::hash<std::string>{}(value_of("NCCL_HOSTID")), why_unreachable()};
  return found;
}

}  // namespace fake
