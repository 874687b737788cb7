// SPDX-License-Identifier: Apache-2.0
//
// What the two halves of `reduce` and its row of the table share.
#pragma once

#include "kernel.h"

namespace orr_cpu {

enum class ReduceFn { sum, sumsq, max, min, unknown };
ReduceFn reduce_fn(const orr_op& op);

// Blocks of a row of n elements that is summed in parallel.
int64_t reduce_blocks(int64_t n);

}  // namespace orr_cpu
