// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch by ops of plugins, whose kernels know nothing of microbatches. Of 6 samples
// in 3 microbatches, all on this rank:
//
//   s = column_sums(x)   x f32[6,4]   ->   s0, s1, s2 = column_sums of x[0:2], x[2:4], x[4:6]
//                                          s = the tree sum of [s0, s1, s2], as of any sum
#pragma once

#include "partition/samples/summands.h"
#include "program/program.h"

namespace orrery {

// Appends `op`, of `p`, which sums over the samples of summands.n microbatches.
void append_by_microbatch(Program& p, const Op& op, const Summands& summands);

// The attributes of an op of the core that makes this rank's nodes of the sum.
void set_summands(Attrs& attrs, const Summands& summands, bool idle);

}  // namespace orrery
