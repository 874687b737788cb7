// SPDX-License-Identifier: Apache-2.0
//
// Where exchanges of a device wait in pinned memory: each from its post to its wait, offsets as in
// the memory plan. What lies in one storage lies there alike, so that operations in place stay so.
#pragma once

#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// Bytes that an exchange sends and receives each time. Both 0: it is not staged.
struct StagedBytes {
  uint64_t send = 0, recv = 0;
};

struct StagingPlan {
  // By exchange: what an offset in the storage of `send` or `recv` becomes when this is added; it
  // may wrap.
  struct Shift {
    uint64_t send = 0, recv = 0;
  };
  std::vector<Shift> shifts;
  uint64_t bytes = 0;
};
StagingPlan plan_staging(const RankPlan& plan, const std::vector<StagedBytes>& bytes);

}  // namespace orrery
