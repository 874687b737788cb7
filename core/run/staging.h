// SPDX-License-Identifier: Apache-2.0
//
// Lays out the pinned memory that staged exchanges of a device use from post to wait. Tensors that
// share a storage keep their distance, so that operations in place stay in place.
#pragma once

#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// The bytes that an exchange sends and receives each time. Both 0: it is not staged.
struct StagedBytes {
  uint64_t send = 0, recv = 0;
};

struct StagingPlan {
  // By exchange: added to an offset in the storage of `send` or `recv`, this gives the offset in
  // the staging memory; the addition may wrap around.
  struct Shift {
    uint64_t send = 0, recv = 0;
  };
  std::vector<Shift> shifts;
  uint64_t bytes = 0;
};
StagingPlan plan_staging(const RankPlan& plan, const std::vector<StagedBytes>& bytes);

}  // namespace orrery
