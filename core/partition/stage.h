// SPDX-License-Identifier: Apache-2.0
//
// Layers on ranks (docs/design.md, "Lowering"): every op of a step belongs to a chunk of the model
// (Op::stage), every chunk to a coordinate of an axis; values that cross become messages.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "partition/mesh.h"
#include "partition/stage_homes.h"
#include "program/program.h"

namespace orrery {

// Deals the ops of `p` to `chunks` chunks. modules[c] names the modules of chunk c, as
// "tok,pos,blocks.1-6"; empty: contiguous runs of modules of about equal cost. What belongs to no
// module goes with what it is computed from; backward goes with its forward. Throws Error when a
// module is named twice, left out or unknown, or when a chunk needs what a later one computes.
void assign_stages(Program& p, int chunks, const std::vector<std::string>& modules);

// Puts a total behind each sum over the batch that other ops read as well: a stage adds up its own
// sums, and what is made of those of several stages is made of wholes. Bits do not change.
// REQUIRES: the ops are dealt to stages.
void complete_sums(Program& p);

struct StageShare {
  Program program;
  std::set<std::string> held_twice;  // states that several stages have (tied weights)
};

// The program of the ranks with this coordinate: their chunks, with send and recv for what crosses;
// in the update, what concerns the parameters that they hold. States held elsewhere have empty
// parts.
// REQUIRES: `homes` are those of `p`.
StageShare split_stages(const Program& p, const Mesh& mesh, const StageHomes& homes, int rank);

}  // namespace orrery
