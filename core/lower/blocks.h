// SPDX-License-Identifier: Apache-2.0
//
// Reductions of whole tensors put together from those of blocks (orrery/ops.h, SUMS).
#pragma once

#include "program/program.h"

namespace orrery {

// Whether a reduce is a sum, of values or of squares.
bool adds_up(const Op& reduce);

// What `op`, a reduce, makes of the dims of x from `begin` on, in `dtype`.
ValueId reduce_from(Program& p, const Op& op, ValueId x, int64_t begin, int32_t dtype);

// Appends what makes op's result of all blocks' results: sums in the tree over the block index.
void combine_blocks(Program& p, const Op& op, ValueId blocks);

}  // namespace orrery
