// SPDX-License-Identifier: Apache-2.0
//
// Computes the relation to the batch of an op's outputs from those of its inputs. The rules are the
// same for all kinds:
//
//   none, with none                      none
//   sharded, with sharded or none        sharded where the output has the factor of the batch dim
//                                        (OpDef::sharding), else partial: the op sums over it
//   partial only, in a linear op         partial: views, sums and multiples of sums
//   partial or mean, in any other op     mean: known when all microbatches are done
//   partial or mean, with sharded        it is completed first (Program::completed), which makes it
//                                        a value of relation none
//
// An op that reads a partial or a mean reads the completed value. Lowering completes a partial over
// all microbatches and ranks before the first op that reads it (partition/localize.h): after all of
// backward, or earlier if an op of samples needs it. In that case all microbatches must run in one
// call.
#pragma once

#include "program/program.h"

namespace orrery {

// Sets the relation of an op's outputs. Throws Error with the current site's prefix.
void relate_to_batch(Program& p, const Op& op);

// Whether the op is linear in the inputs for which `varies` is true, taken together, whatever the
// others are.
bool is_linear_in(const Program& p, const Op& op, const std::vector<char>& varies);

// An op's name in messages: of a pointwise op or a reduction that of its function.
std::string name_of(const Op& op);

// The batch dim of a batch of one sample after a reshape. It has extent 1, so no factor shows it
// (ops/shape.cpp). kNone if there is no such dim.
int32_t dim_of_one(const Dims& from, const Dims& to, int32_t dim);

// Groups of consecutive dims on both sides of a reshape that have the same elements: [begin, end)
// of the input, and of the output. They end where no more dims agree (ops/shape.cpp).
struct SameElements {
  size_t in[2], out[2];
};
std::vector<SameElements> same_elements(const Dims& from, const Dims& to);

}  // namespace orrery
