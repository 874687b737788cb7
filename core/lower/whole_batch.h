// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// Samples may read sums over the batch, and its gathered rows, where those are complete within the
// pass: all microbatches of a rank run in one call, and the ranks that exchange them have the whole
// batch. Throws Error with the Lua line of the first op that reads them where that is not so.
void check_whole_batch(const Program& p, const Mesh& mesh);

}  // namespace orrery
