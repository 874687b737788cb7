// SPDX-License-Identifier: Apache-2.0
//
// Makes one rank's plan (L2) of a logical program (L1) and its mesh. Lowering needs no device, no
// peer and no memory but its own, so the same call serves training and `orrery plan -n 512`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "partition/stage_ranks.h"

namespace orrery {

struct LowerRequest {
  const Program* logical = nullptr;
  const Mesh* mesh = nullptr;
  int64_t microbatches = 1;
  int rank = 0;                      // in the world that the mesh is for
  std::vector<std::string> kernels;  // names of the kernel plugins to choose from
  // What the caller has already computed for this rank; null: lower() computes it.
  const Program* cut = nullptr;             // CutProgram::program
  const StageRanks* stage_ranks = nullptr;  // of `cut`, or of the logical program if nothing is cut
  bool fuse = true;  // false: every op has a launch of its own, with the same bits
};

RankPlan lower(const LowerRequest& request);

// What the rank's model-parallel axes leave it of the logical program: its parts of values that are
// cut, and its stage of a pipeline. Batch axes are not applied yet: `sharded` says
// which of its parameters' training state is to be sharded over them.
struct ModelShard {
  std::shared_ptr<const Program> program;  // may be the caller's, which outlives this
  std::map<std::string, Sharded> sharded;  // as Mesh::sharded
};
ModelShard model_shard_of(const LowerRequest& request);

// The rank's program by all axes, before its microbatches are counted: the batch is whole in its
// types, and its values have their layouts. `idle`: the rank works alone and gets no microbatch.
std::shared_ptr<const Program> rank_program(const LowerRequest& request, bool idle);

// The passes of lower(), in their order. Tests call them one by one.

// Writes ops of plugins in known ops where none of these plugins takes them (orrery/op.h).
void write_in_known_ops(LocalProgram& local, const std::vector<std::string>& kernels);
// Makes one op of each group of ops that one of these plugins claims (orrery/kernel.h). `fused`:
// whether the passes below were before.
void claim_groups(LocalProgram& local, const std::vector<std::string>& kernels, bool fused);
// Runs the passes below, and claim_groups of what they made.
void fuse_ops(LocalProgram& local, const Mesh& mesh, const std::vector<std::string>& kernels);
// Has a small value that several ops compute in the same way computed once.
void share_equal(LocalProgram& local);
// Puts the casts of states before all other ops.
void cast_first(LocalProgram& local);
// Sums 16-bit tensors as they are stored where their casts to f32 are summed.
void sum_as_stored(LocalProgram& local);
// Moves what only the update reads, and what depends on states alone, into the update.
void update_late(LocalProgram& local);
// Joins chains of pointwise ops into single ones (docs/design.md, "A program"). Bits do not change:
// every instruction keeps its own rounding.
void fuse_pointwise(LocalProgram& local);
// Joins each matmul with the pointwise op that reads it, where one of these plugins takes both.
void fuse_products(LocalProgram& local, const std::vector<std::string>& kernels);
// Joins each loss with its gradient, where one of these plugins takes both. Not where microbatches
// run in a call each.
void join_losses(LocalProgram& local, const std::vector<std::string>& kernels);
// Drops values that pointwise ops store for others, where these can compute them from as little.
// Not where microbatches run in a call each.
void recompute_cheap(LocalProgram& local);
// Moves small sums that only the update reads to the end of forward.
void sum_late(LocalProgram& local, const Mesh& mesh);
// Gives every value a storage and a place in it, and makes a launch of every op.
void place_values(RankPlan& plan);
// Puts totals into buckets; `first_microbatch` as in localize.
void fill_buckets(RankPlan& plan, const std::vector<int64_t>& first_microbatch);
// Orders the steps of all lanes. The three functions behind it are parts of it.
void make_schedule(RankPlan& plan);
void order_one_by_one(RankPlan& plan);   // repeats the steps for each microbatch
void stream_states(RankPlan& plan);      // copies states of other tiers in and out
void stash_activations(RankPlan& plan);  // copies activations to other tiers and back
// Counts slots, and gives every storage its offset.
void plan_memory(RankPlan& plan);
// Gives each storage an offset, so that storages that are alive together do not overlap. Returns
// how many bytes they take.
uint64_t lay_out(std::vector<Storage*>& storages, uint64_t alignment);
// Throws Error if a step reads what is not written, storages overlap, or an exchange stays open.
void verify(const RankPlan& plan);

}  // namespace orrery
