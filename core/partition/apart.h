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

// Completes every sum over the batch that an update is made of over `mesh.gradient_axis()` alone,
// by the text attribute "among" of the op that sums (partition/localize.h). What a step reports
// stays the mean over all ranks; of values of the update, such as a gradient's norm, the mean of
// the ranks' own. A coordinate of `mesh.apart` that gets none of the samples changes none of its
// states, and no such mean counts it.
void sum_apart(Program& p, const Mesh& mesh, int64_t microbatches);

// Lets a program that updates nothing read one value of every state that varies but for those that
// are `alike` on all ranks: made of the coordinates' as State::leave says, anew each time.
void read_one_value(Program& p, const std::set<const State*>& alike);

}  // namespace orrery
