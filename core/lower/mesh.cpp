// SPDX-License-Identifier: Apache-2.0
#include "lower/mesh.h"

namespace orrery {
namespace {

// Ranks between neighbours on `axis`; 0 if there is no such axis.
int stride_of(const Spread& spread, const std::string& axis) {
  for (const Halves& h : spread.halves)
    if (h.inner == axis || h.outer == axis)
      return stride_of(spread, h.axis) * (h.outer == axis ? h.inner_size : 1);
  int stride = 1;
  for (size_t i = spread.axes.size(); i-- > 0; stride *= spread.axes[i].size)
    if (spread.axes[i].name == axis) return stride;
  return 0;
}

}  // namespace

int Spread::size_of(const std::string& axis) const {
  for (const Halves& h : halves)
    if (h.inner == axis || h.outer == axis)
      return h.inner == axis ? h.inner_size : size_of(h.axis) / h.inner_size;
  for (const Axis& known : axes)
    if (known.name == axis) return known.size;
  return 1;
}

int Spread::batch_ranks() const { return size_of(batch_axis); }

int Spread::coordinate(const std::string& axis, int rank) const {
  int stride = stride_of(*this, axis);
  return stride ? rank / stride % size_of(axis) : 0;
}

int Spread::peer(const std::string& axis, int other, int rank) const {
  return rank + (other - coordinate(axis, rank)) * stride_of(*this, axis);
}

std::vector<int64_t> deal_leaves(int64_t leaves, int ranks, int idle) {
  std::vector<int64_t> first(static_cast<size_t>(ranks) + 1);
  const int workers = ranks - idle;
  for (int r = idle; r <= ranks; ++r) first[static_cast<size_t>(r)] = leaves * (r - idle) / workers;
  return first;
}

}  // namespace orrery
