// SPDX-License-Identifier: Apache-2.0
#include "partition/mesh.h"

#include <algorithm>

namespace orrery {
namespace {

// The difference of rank between neighbours on `axis`; 0 if there is no such axis.
int stride_of(const Mesh& mesh, const std::string& axis) {
  for (const SplitAxis& h : mesh.split_axes)
    if (h.inner == axis || h.outer == axis)
      return stride_of(mesh, h.axis) * (h.outer == axis ? h.inner_size : 1);
  int stride = 1;
  for (size_t i = mesh.axes.size(); i-- > 0; stride *= mesh.axes[i].size)
    if (mesh.axes[i].name == axis) return stride;
  return 0;
}

}  // namespace

int Mesh::batch_share(int c) const {
  if (shares.of.empty()) return 1;
  return shares.of[static_cast<size_t>(coordinate(shares.axis, peer(batch_axis, c, 0)))];
}

int Mesh::least_microbatches() const {
  int sum = 0;
  for (int c = 0; c < batch_ranks(); ++c) sum += batch_share(c);
  return sum;
}

std::string Mesh::replicas_of(const std::string& axis) const {
  for (const SplitAxis& h : split_axes)
    if (h.inner == axis) return with_axis(without_axis(gradient_axis(), h.axis), h.outer);
  return without_axis(gradient_axis(), axis);
}

std::string Mesh::maker_of(const std::string& product) const {
  for (const Axis& axis : axes)
    if (has_axis(product, axis.name)) return axis.strategy;
  return "";
}

int Mesh::size_of(const std::string& axis) const {
  if (axis.find('*') != std::string::npos) {
    int size = 1;
    for (const std::string& one : factors_of(axis)) size *= size_of(one);
    return size;
  }
  for (const SplitAxis& h : split_axes)
    if (h.inner == axis || h.outer == axis)
      return h.inner == axis ? h.inner_size : size_of(h.axis) / h.inner_size;
  for (const Axis& known : axes)
    if (known.name == axis) return known.size;
  return 1;
}

std::string Mesh::placed_axis() const {
  std::string all;
  for (const Placing& placing : placed) all = with_axis(all, placing.axis);
  return all;
}

std::string Mesh::gathered_axis() const {
  return without_axis(batch_axis, without_axis(batch_axis, placed_axis()));
}

int Mesh::batch_ranks() const { return size_of(batch_axis); }

int Mesh::coordinate(const std::string& axis, int rank) const {
  if (axis.find('*') != std::string::npos) {
    int at = 0;
    for (const std::string& one : factors_of(axis)) at = at * size_of(one) + coordinate(one, rank);
    return at;
  }
  int stride = stride_of(*this, axis);
  return stride ? rank / stride % size_of(axis) : 0;
}

int Mesh::peer(const std::string& axis, int other, int rank) const {
  if (axis.find('*') != std::string::npos) {
    const std::vector<std::string> all = factors_of(axis);
    for (size_t i = all.size(); i-- > 0; other /= size_of(all[i]))
      rank = peer(all[i], other % size_of(all[i]), rank);
    return rank;
  }
  return rank + (other - coordinate(axis, rank)) * stride_of(*this, axis);
}

Mesh::Shape Mesh::shape_of(const std::string& axis, int rank) const {
  Shape shape;
  for (const std::string& one : factors_of(axis)) {
    const int size = size_of(one);
    if (size == 1) continue;
    const int stride = peer(one, 1, rank) - peer(one, 0, rank);
    if (!shape.empty() && shape.back().second == size * stride)
      shape.back() = {shape.back().first * size, stride};
    else
      shape.push_back({size, stride});
  }
  return shape;
}

std::vector<MeshAxis> axes_of(const Mesh& mesh) {
  std::vector<MeshAxis> found;
  for (const Axis& axis : mesh.axes) found.push_back({axis.name, axis.size});
  return found;
}

Mesh mesh_of_periodic(Mesh step) {
  step.schedule.one_by_one = false, step.shares = {};
  for (Placing& placing : step.placed) placing.values.clear();  // these are values of the step
  return step;
}

std::vector<int64_t> assign_microbatches(int64_t microbatches, int ranks) {
  std::vector<int64_t> first;
  for (int r = 0; r <= ranks; ++r) first.push_back(microbatches * r / ranks);
  return first;
}

std::vector<int64_t> assign_microbatches(int64_t microbatches, const Mesh& mesh) {
  if (mesh.shares.of.empty()) return assign_microbatches(microbatches, mesh.batch_ranks());
  std::vector<int64_t> first = {0};
  int64_t before = 0;
  for (int c = 0; c < mesh.batch_ranks(); ++c) {
    before += mesh.batch_share(c);
    first.push_back(microbatches * before / mesh.least_microbatches());
  }
  return first;
}

bool assigns_evenly(int64_t microbatches, const Mesh& mesh) {
  const std::vector<int64_t> first = assign_microbatches(microbatches, mesh);
  for (size_t r = 0; r + 1 < first.size(); ++r)
    if (first[r + 1] - first[r] != first[1]) return false;
  return true;
}

std::vector<int64_t> microbatches_on(const Mesh& mesh, const std::vector<int64_t>& first_microbatch,
                                     const std::string& axis, int rank,
                                     const std::string& gathered) {
  if (axis == mesh.batch_axis && !mesh.fast_sums) return first_microbatch;
  std::vector<int64_t> first = {0};
  for (int c = 0; c < mesh.size_of(axis); ++c) {
    first.push_back(first.back());
    for (int g = 0; g < mesh.size_of(gathered); ++g) {
      const int peer = mesh.peer(gathered, g, mesh.peer(axis, c, rank));
      const auto r = static_cast<size_t>(mesh.coordinate(mesh.batch_axis, peer));
      first.back() += first_microbatch[r + 1] - first_microbatch[r];
    }
    if (mesh.fast_sums) first.back() = std::min(first.back(), first[first.size() - 2] + 1);
  }
  return first;
}

}  // namespace orrery
