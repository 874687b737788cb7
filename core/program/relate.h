// SPDX-License-Identifier: Apache-2.0
//
// How what an op makes relates to the batch. One algebra for all kinds:
//
//   none, with none                      none
//   sharded, with sharded or none        sharded where the output has the factor of the batch dim
//                                        (OpDef::sharding), else partial: the op sums over it
//   partial alone, in a linear op        partial: views, sums and multiples of sums
//   partial or mean, in any other op     mean: known when all microbatches are done
//   partial or mean, with sharded        it is completed first (Program::completed), which makes it
//                                        a value of relation none
//
// A partial or a mean stands for its whole, wherever it is read: lowering totals a partial over all
// microbatches and ranks before the first op that reads it (partition/localize.h), after all of
// backward unless the op that reads it leads to samples. Completing needs all microbatches in one
// call.
#pragma once

#include "program/program.h"

namespace orrery {

// Gives the outputs of an op their relation. Throws Error with the current site's prefix.
void relate_to_batch(Program& p, const Op& op);

// Why the cotangent of what `op` makes of means cannot pass to its input x, "" if it can: gradients
// are divided by the summed weight once, at the end, so a loss holds sums and
// multiples of means alone.
std::string blocks_gradient(const Program& p, const Op& op, ValueId x);

// Where a batch of one sample is after a reshape: its dim has extent 1, which no factor names
// (ops/shape.cpp). kNone if it is lost.
int32_t dim_of_one(const Dims& from, const Dims& to, int32_t dim);

// Consecutive dims of both sides of a reshape that hold the same elements: [begin, end) of the
// input, then of the output. They end where no more dims agree (ops/shape.cpp).
struct SameElements {
  size_t in[2], out[2];
};
std::vector<SameElements> same_elements(const Dims& from, const Dims& to);

}  // namespace orrery
