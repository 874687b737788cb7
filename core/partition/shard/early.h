// SPDX-License-Identifier: Apache-2.0
//
// Forward and backward of a rank whose parameters lie in pieces: units are gathered where they are
// read, and the pieces of gradients that leave after every microbatch are sent.
#pragma once

#include <vector>

#include "partition/shard/each.h"
#include "partition/shard/units.h"

namespace orrery {

// Appends forward and backward of `from` to `to`, which has the values of `from`. Notes in
// `scatters` where the pieces that come are (Scatter::piece).
void emit_early(const Program& from, const Mesh& mesh, int rank, const std::vector<Unit>& units,
                std::vector<Scatter>& scatters, Program& to);

}  // namespace orrery
