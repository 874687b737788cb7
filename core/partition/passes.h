// SPDX-License-Identifier: Apache-2.0
//
// Passes of the sub-rooms that need no header of their own: a function each.
#pragma once

#include <string>
#include <vector>

#include "partition/localize.h"
#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// -- samples/ -------------------------------------------------------------------------------------

// Throws Error, with the Lua line of the op, if an op of samples reads a sum over the batch or its
// gathered rows which could not be complete by then. They are if all microbatches of a rank run in
// one call, and the ranks that exchange them have the whole batch.
void check_whole_batch(const Program& p, const Mesh& mesh);

// The same for sums that a loss needs before its backward begins (Training::needs_sums). Throws
// Error with the place of the loss's op that needs them.
void check_loss(const std::string& needs_sums, const Mesh& mesh);

// -- shard/ ---------------------------------------------------------------------------------------

// Sharded training state (Rajbhandari et al., "ZeRO", SC'20) as a rewrite of one rank's program:
// sums of gradients end as pieces at their owners, updates run on pieces, new parameters are
// gathered; or parameters stay in pieces and are gathered before the layers that use them (Zhao et
// al., "PyTorch FSDP", VLDB 2023).
//
// The program of `rank`. `p` may be one stage of a pipeline, and its states may be cut over other
// axes already: then the parts are sharded.
Program shard(const Program& p, const Mesh& mesh, int rank);

// What `shard` makes for a rank, by coordinate on the axis that gradients are summed over. Two
// ranks have equal texts if their programs have the same ops and shapes: each unit gives both as
// many elements, and the same ops update these. Whose elements they are, which parameter's, may
// differ.
struct ShardShape {
  std::string text;
  int64_t elements = 0;  // of the rank's shards
};
std::vector<ShardShape> shard_shapes(const Program& p, const Mesh& mesh);

// The gradient of an embedding is a sum over the batch of which most rows are zero. If the tokens
// of all ranks are few beside the table, this replaces the all-reduce of the whole table: ranks
// gather the rows of all tokens, and each adds them, in the order and the tree of one process.
// Where such a gradient is added to another one, as of a tied output layer, the rows are added to
// that.
//
// Runs before fusion. A program that runs its microbatches one by one stays as it is.
void gather_rows(LocalProgram& local, const Mesh& mesh, int rank);

// Small collectives of an update are merged, because to start an exchange takes longer than to move
// so few bytes.
//
// Finds collectives of equal kind that do not depend on each other, puts them side by side and
// gives them a group number (CommOp::group). Works on the logical program, because the order of
// exchanges has to be the same on all ranks.
void group_collectives(Program& p);

// Makes one collective of each group, in a rank's program.
void merge_groups(Program& p);

// Compute copies (the half-precision parameters beside f32 masters of Micikevicius et al., ICLR
// 2018, as Rajbhandari et al., SC'20, count them). Where forward and backward read a sharded
// parameter only through casts to one narrower dtype, the program keeps the cast value as a state,
// the copy, and reads that. Only the update then reads the parameter itself: it is sharded like an
// optimizer state, and the copy is what is whole on every rank, or gathered.
//
// Makes a step or an evaluation read copies in place of its sharded parameters. Throws Error if it
// reads a parameter in another way, and an earlier program has kept a copy of it. Works on the
// logical program, once its update is written.
void read_copies(Program& p, const Mesh& mesh);

// Adds to a program the ops that make new copies of the parameters that it updates, where copies
// are among its states.
void update_copies(Program& p);

}  // namespace orrery
