// SPDX-License-Identifier: Apache-2.0
//
// Passes of the sub-rooms that need no header of their own: a function each.
#pragma once

#include "partition/localize.h"
#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// -- samples/ -------------------------------------------------------------------------------------

// Samples may read sums over the batch, and its gathered rows, where those are complete within the
// pass: all microbatches of a rank run in one call, and the ranks that exchange them have the whole
// batch. Throws Error with the Lua line of the first op that reads them where that is not so.
void check_whole_batch(const Program& p, const Mesh& mesh);

// -- shard/ ---------------------------------------------------------------------------------------

// Sharded training state (Rajbhandari et al., "ZeRO", SC'20) as a rewrite of one rank's program:
// sums of gradients end as pieces at their owners, updates run on pieces, new parameters are
// gathered; or parameters stay in pieces and are gathered before the layers that use them (Zhao et
// al., "PyTorch FSDP", VLDB 2023).
//
// The program of `rank`. `p` may be a stage of the whole; parts of its states are cut further.
Program shard(const Program& p, const Mesh& mesh, int rank);

// Sums over the batch of which most rows are zero: the gradient of an embedding. Where the tokens
// of all ranks are few beside the table, ranks gather the tokens' rows and each adds them all, in
// the order and the tree of one process, instead of summing whole tables. Rows that are added to
// another gradient, such as that of a tied output layer, are added in its place.
//
// Before fusion. Leaves programs in slices as they are: there a table gathers the rows of all
// slices.
void gather_rows(LocalProgram& local, const Mesh& mesh, int rank);

// Small collectives of an update travel as one: to start an exchange takes longer than to move so
// little.
//
// Finds collectives of equal kind that need nothing of each other, and puts them side by side (int
// "group"). For the logical program: the order of exchanges has to be the same on all ranks.
void group_collectives(Program& p);

// Makes one collective of each group. For a rank's program.
void merge_groups(Program& p);

// Compute copies (the half-precision parameters beside f32 masters of Micikevicius et al., ICLR
// 2018, as Rajbhandari et al., SC'20, count them). Where forward and backward read a parameter that
// is sharded through casts to one narrower dtype alone, the program keeps its value in that dtype
// as a state, and reads that. The parameter itself is then read by the update alone: it lies in
// pieces like an optimizer state, and what is whole on every rank, or gathered, is the copy.
//
// Has a step, or an evaluation, read copies in place of its sharded parameters. Throws Error if it
// reads one otherwise of which earlier programs have kept a copy. For the logical program, once its
// update is written.
void read_copies(Program& p, const Mesh& mesh);

// Has a program that has copies among its states make those of the parameters that it updates.
void update_copies(Program& p);

}  // namespace orrery
