// SPDX-License-Identifier: Apache-2.0
//
// Reductions of whole tensors in two steps: first each block, then the results of the blocks
// (orrery/ops.h, SUMS).
#pragma once

#include <vector>

#include "program/program.h"

namespace orrery {

// Whether this op of the update turns a whole tensor into a scalar.
bool is_whole_reduce(const Program& p, const Op& op);

// The dtype of a block's result, where `op` reduces a whole tensor: sums keep the accumulator's.
int32_t block_dtype(const Program& p, const Op& op);

// Applies `op` to each block of x, which is flat and begins at a block's boundary (`each`), or to
// all of x at once, in any shape. Returns the results in `dtype`, one after another.
std::vector<ValueId> reduce_blocks(Program& p, const Op& op, ValueId x, bool each, int32_t dtype);

// The result of `op` from those of all blocks: sums are added in the tree over the block index.
ValueId combine_blocks(Program& p, const Op& op, ValueId blocks);

}  // namespace orrery
