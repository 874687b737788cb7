// SPDX-License-Identifier: Apache-2.0
//
// Reductions of whole tensors put together from those of blocks (orrery/ops.h, SUMS).
#pragma once

#include <vector>

#include "program/program.h"

namespace orrery {

// Whether this op of the update turns a whole tensor into a scalar.
bool is_whole_reduce(const Program& p, const Op& op);

// What `op`, a reduce of a whole tensor, makes of a block: sums keep the accumulator's width.
int32_t block_dtype(const Program& p, const Op& op);

// What `op` makes of each block of x, which is flat and begins with one, or of all of x at once, in
// any shape; in `dtype`, one result after another.
std::vector<ValueId> reduce_blocks(Program& p, const Op& op, ValueId x, bool each, int32_t dtype);

// op's result of all blocks' results: sums in the tree over the block index.
ValueId combine_blocks(Program& p, const Op& op, ValueId blocks);

}  // namespace orrery
