// SPDX-License-Identifier: Apache-2.0
//
// Ranks that train apart: on some of the axes that deal the batch every coordinate updates its
// states from its own part of the batch (local SGD and what is built on it).
#pragma once

#include <set>

#include "partition/mesh.h"
#include "program/program.h"
#include "program/state.h"

namespace orrery {

// Has every sum over the batch that an update reads completed over `mesh.gradient_axis()` only: it
// sets the text attribute "among" of the op that sums (partition/localize.h). What a step reports
// stays a mean over all ranks. For a value of the update, such as a gradient's norm, that is the
// mean of the coordinates' own values. A coordinate of `mesh.apart` that gets no samples changes
// none of its states, and does not count in such a mean.
void sum_apart(Program& p, const Mesh& mesh, int64_t microbatches);

// Lets a program that updates nothing read one value of every varying state. At each run of the
// program the value is made of the coordinates' values by the rule State::leave. States in `alike`,
// which are equal on all ranks, are read as they are.
void read_one_value(Program& p, const std::set<const State*>& alike);

}  // namespace orrery
