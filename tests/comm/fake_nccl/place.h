// SPDX-License-Identifier: Apache-2.0
//
// Where NCCL's variables say that a rank is, and how it reaches other hosts.
#pragma once

#include <cstdint>
#include <string>

namespace fake {

struct Place {
  uint64_t host;  // by NCCL_HOSTID; without one all ranks are on the same
  // Why other hosts cannot be reached, or "": they are by loopback alone, as if nothing else were
  // connected.
  std::string unreachable;
};

// As the variables were when the library was first asked for anything: later changes do not count,
// as in the real one.
const Place& place();

}  // namespace fake
