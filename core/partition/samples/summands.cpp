// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/summands.h"

namespace orrery {

Summands summands_over(const std::string& axis, const std::string& gathered, const Mesh& mesh,
                       const Microbatches& microbatches,
                       const std::vector<int64_t>& first_microbatch, int rank) {
  if (axis == mesh.batch_axis && !mesh.fast_sums)
    return {axis, "", microbatches.first, microbatches.count(), microbatches.total};
  const std::vector<int64_t> first = microbatches_on(mesh, first_microbatch, axis, rank, gathered);
  const auto me = static_cast<size_t>(mesh.coordinate(axis, rank));
  return {axis, gathered, first[me], first[me + 1] - first[me], first.back()};
}

}  // namespace orrery
