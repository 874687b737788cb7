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

// Assigns the ops of `p` to `chunks` chunks. modules[c] names the modules of chunk c, as
// "tok,pos,blocks.1-6". An op that belongs to no module goes with the ops that make its inputs; a
// backward op goes with its forward op. Throws Error when a module is named twice, left out or
// unknown, or when a chunk needs what a later one computes.
void assign_stages(Program& p, int chunks, const std::vector<std::string>& modules);

// The same with contiguous runs of modules of about equal cost. `chosen` is what was chosen for an
// earlier program of the run, which has put the parameters on these stages: it is kept, whatever
// the modules cost in this program. Empty: it is set now.
void balance_stages(Program& p, int chunks, ChunkModules& chosen);

// For an evaluation: an op of no module is assigned to the chunk of its readers, which may be
// another one than in training. If the op reads a state that a program compiled before has put on a
// stage, this assigns the op to a chunk of that stage, where that chunk comes earlier and what else
// the op reads is there. REQUIRES: the ops have chunks, and all axes are made.
void follow_states(Program& p, const Mesh& mesh);

// Adds a total behind each sum over the batch that ops other than a total read. So a stage
// completes its own sums, and an op that combines sums of several stages reads completed ones. Bits
// do not change.
// REQUIRES: the ops have chunks.
void complete_sums(Program& p);

struct StageProgram {
  Program program;
  std::set<std::string> tied;  // states that several stages have (tied weights)
};

// The program of the stage that `rank` belongs to: its chunks, with send and recv for values that
// cross stages, and of the update what concerns the parameters that it holds. A state that other
// stages hold has no element here.
// REQUIRES: `stage_ranks` are those of `p`.
StageProgram split_stages(const Program& p, const Mesh& mesh, const StageRanks& stage_ranks,
                          int rank);

}  // namespace orrery
