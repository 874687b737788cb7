// SPDX-License-Identifier: Apache-2.0
//
// Ranks that train apart: on some of the batch axes every coordinate updates its states from its
// own part of the batch (local SGD and what is built on it). Example: four ranks on the axes "r"
// and "d", of size 2 each, of which "r" trains apart. The gradients of ranks 0 and 1 are summed,
// and those of ranks 2 and 3; the loss that the step reports is the mean over all four.
#pragma once

#include <set>

#include "partition/mesh.h"
#include "program/program.h"
#include "program/state.h"

namespace orrery {

// Has every sum over the batch that an update reads completed over `mesh.gradient_axis()` only: it
// sets Op::completed_over of the op that sums. What a step
// reports stays a mean over all ranks. For a value of the update, such as a gradient's norm, that
// is the mean of the coordinates' own values. A coordinate of `mesh.independent_axis` that gets no
// samples changes none of its states, and does not count in such a mean.
void sum_independently(Program& p, const Mesh& mesh, int64_t microbatches);

// Lets a program that updates nothing read one value of every varying state. At each run of the
// program the value is made of the coordinates' values by the rule State::leave. States in `alike`,
// which are equal on all ranks, are read as they are.
void read_one_value(Program& p, const std::set<const State*>& alike);

}  // namespace orrery
