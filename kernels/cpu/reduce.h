// SPDX-License-Identifier: Apache-2.0
//
// What the two files of `reduce`, for reals and integers, share with its row of the table.
#pragma once

#include "kernel.h"

namespace orr_cpu {

enum class ReduceFn { sum, sumsq, max, min, unknown };
ReduceFn reduce_fn(const orr_op& op);

// How many blocks a row of n elements has, if it is summed in parallel.
int64_t reduce_blocks(int64_t n);

}  // namespace orr_cpu
