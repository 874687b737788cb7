// SPDX-License-Identifier: Apache-2.0
//
// How a rank tells its peers that it has come to an operation: to which one, and, if there is room
// behind that, with which operand. One for each parity of the step; 8 bytes travel in one cache
// line.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <cstdint>

#include "segment.h"

namespace local {

struct alignas(128) Notice {
  std::atomic<uint64_t> step;  // written last
  uint64_t fingerprint;
  char data[2 << 10];
};

inline Notice* notices_of(const Mapping& mapping) {
  return reinterpret_cast<Notice*>(mapping.base());
}

// Whether all that the operation moves fits into notices. The answer is the same on all ranks that
// post the same operation.
bool is_brief(const orr_coll& c, int ranks);

}  // namespace local
