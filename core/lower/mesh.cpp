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
  if (axis.find('*') != std::string::npos) {
    int size = 1;
    for (const std::string& one : factors_of(axis)) size *= size_of(one);
    return size;
  }
  for (const Halves& h : halves)
    if (h.inner == axis || h.outer == axis)
      return h.inner == axis ? h.inner_size : size_of(h.axis) / h.inner_size;
  for (const Axis& known : axes)
    if (known.name == axis) return known.size;
  return 1;
}

std::string Spread::placed_axis() const {
  std::string all;
  for (const Placing& placing : placed) all = with_axis(all, placing.axis);
  return all;
}

std::string Spread::gathered_axis() const {
  return without_axis(batch_axis, without_axis(batch_axis, placed_axis()));
}

int Spread::batch_ranks() const { return size_of(batch_axis); }

int Spread::coordinate(const std::string& axis, int rank) const {
  if (axis.find('*') != std::string::npos) {
    int at = 0;
    for (const std::string& one : factors_of(axis)) at = at * size_of(one) + coordinate(one, rank);
    return at;
  }
  int stride = stride_of(*this, axis);
  return stride ? rank / stride % size_of(axis) : 0;
}

int Spread::peer(const std::string& axis, int other, int rank) const {
  if (axis.find('*') != std::string::npos) {
    const std::vector<std::string> all = factors_of(axis);
    for (size_t i = all.size(); i-- > 0; other /= size_of(all[i]))
      rank = peer(all[i], other % size_of(all[i]), rank);
    return rank;
  }
  return rank + (other - coordinate(axis, rank)) * stride_of(*this, axis);
}

std::vector<MeshAxis> mesh_of(const Spread& spread) {
  std::vector<MeshAxis> mesh;
  for (const Axis& axis : spread.axes) mesh.push_back({axis.name, axis.size});
  return mesh;
}

Spread spread_of_periodic(Spread step) {
  step.sliced = false, step.idle = 0;
  for (Placing& placing : step.placed) placing.values.clear();  // those of the step
  return step;
}

std::vector<int64_t> deal_leaves(int64_t leaves, int ranks, int idle) {
  std::vector<int64_t> first(static_cast<size_t>(ranks) + 1);
  const int workers = ranks - idle;
  for (int r = idle; r <= ranks; ++r) first[static_cast<size_t>(r)] = leaves * (r - idle) / workers;
  return first;
}

std::vector<int64_t> leaves_among(const Spread& spread, const std::vector<int64_t>& dealt,
                                  const std::string& axis, int rank, const std::string& gathered) {
  if (axis == spread.batch_axis) return dealt;
  std::vector<int64_t> first = {0};
  for (int c = 0; c < spread.size_of(axis); ++c) {
    first.push_back(first.back());
    for (int g = 0; g < spread.size_of(gathered); ++g) {
      const int peer = spread.peer(gathered, g, spread.peer(axis, c, rank));
      const auto r = static_cast<size_t>(spread.coordinate(spread.batch_axis, peer));
      first.back() += dealt[r + 1] - dealt[r];
    }
  }
  return first;
}

}  // namespace orrery
