// SPDX-License-Identifier: Apache-2.0
//
// Reductions of whole tensors put together from those of blocks (orrery/ops.h, SUMS).
#pragma once

#include <vector>

#include "program/program.h"

namespace orrery {

// Whether a reduce is a sum, of values or of squares.
bool adds_up(const Op& reduce);

// What `op`, a reduce of a whole tensor, makes of each block of x, which is flat and begins with
// one, or of all of x at once, in any shape; in `dtype`, one result after another.
std::vector<ValueId> reduce_blocks(Program& p, const Op& op, ValueId x, bool each, int32_t dtype);

// Appends what makes op's result of all blocks' results: sums in the tree over the block index.
void combine_blocks(Program& p, const Op& op, ValueId blocks);

}  // namespace orrery
