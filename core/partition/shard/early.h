// SPDX-License-Identifier: Apache-2.0
//
// Forward and backward of a rank whose parameters are sharded: units are gathered before the ops
// that read them, and gradients that leave after every microbatch are reduce-scattered behind the
// ops that make them. For a unit of the parameter w:
//
//   y = matmul(x, w)    ->    w_all = all_gather(w); y = matmul(x, w_all)
#pragma once

#include <vector>

#include "partition/shard/each.h"
#include "partition/shard/units.h"

namespace orrery {

// Appends forward and backward of `from` to `to`, which has the values of `from`. Sets
// Scatter::piece and Scatter::own of `scatters`.
void emit_early(const Program& from, const Mesh& mesh, int rank, const std::vector<Unit>& units,
                std::vector<Scatter>& scatters, Program& to);

}  // namespace orrery
