// SPDX-License-Identifier: Apache-2.0
#include "lower/mesh.h"

namespace orrery {

int Spread::batch_ranks() const {
  for (const Axis& axis : axes)
    if (axis.name == batch_axis) return axis.size;
  return 1;
}

std::vector<int64_t> deal_leaves(int64_t leaves, int ranks) {
  std::vector<int64_t> first(static_cast<size_t>(ranks) + 1);
  for (int r = 0; r <= ranks; ++r) first[static_cast<size_t>(r)] = leaves * r / ranks;
  return first;
}

}  // namespace orrery
