// SPDX-License-Identifier: Apache-2.0
//
// Pipeline parallelism (docs/design.md, "Lowering"): every op of a step belongs to a chunk of the
// model (Op::stage), and every chunk to a coordinate of an axis. A value that another coordinate
// reads becomes a message.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "partition/mesh.h"
#include "partition/stage_ranks.h"
#include "program/program.h"

namespace orrery {

// The names of the modules of each chunk.
using ChunkModules = std::vector<std::vector<std::string>>;

// Deals the ops of `p` to `chunks` chunks. modules[c] names the modules of chunk c, as
// "tok,pos,blocks.1-6". An op that belongs to no module goes with the ops that make its inputs; a
// backward op goes with its forward op. Throws Error when a module is named twice, left out or
// unknown, or when a chunk needs what a later one computes.
void assign_stages(Program& p, int chunks, const std::vector<std::string>& modules);

// The same with contiguous runs of modules of about equal cost. `cut` is what was chosen for an
// earlier program of the run, which has its parameters there: it is kept, whatever the modules
// cost in this one. Empty: it is chosen now.
void balance_stages(Program& p, int chunks, ChunkModules& cut);

// Moves ops of an evaluation that read a state to a chunk whose ranks hold it since a program was
// compiled before, if it is an earlier one and what else they read is there: an op of no module
// goes where its readers are, and these may be others in training.
// REQUIRES: the ops are dealt to stages, and all axes are made.
void follow_states(Program& p, const Mesh& mesh);

// Adds a total behind each sum over the batch that ops other than a total read. So a stage
// completes its own sums, and an op that combines sums of several stages reads completed ones. Bits
// do not change.
// REQUIRES: the ops are dealt to stages.
void complete_sums(Program& p);

struct StageShare {
  Program program;
  std::set<std::string> held_twice;  // states that several stages have (tied weights)
};

// The program of the ranks that have the coordinate of `rank`: their chunks, with send and recv for
// values that cross, and of the update what concerns the parameters that they hold. States held
// elsewhere have empty parts.
// REQUIRES: `stage_ranks` are those of `p`.
StageShare split_stages(const Program& p, const Mesh& mesh, const StageRanks& stage_ranks,
                        int rank);

}  // namespace orrery
