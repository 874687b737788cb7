// SPDX-License-Identifier: Apache-2.0
//
// L1 to L2: a logical program, its mesh and one rank make that rank's plan. Pure: needs no
// device, no peer and no memory but its own, so the same call serves training and `orrery plan -n
// 512`.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "partition/stage_homes.h"

namespace orrery {

struct LowerRequest {
  const Program* logical = nullptr;
  const Mesh* mesh = nullptr;
  int64_t microbatches = 1;
  int rank = 0;                      // of the world that the mesh is for
  std::vector<std::string> kernels;  // plugins to choose from, by name
  const Program* cut = nullptr;      // the rank's share of cut values, if the caller has it
  const StageHomes* homes =
      nullptr;  // of that share, or of the logical program, if the caller has them
};

RankPlan lower(const LowerRequest& request);

// The stages, for tests: each leaves the plan ready for the next.
// Joins chains of pointwise ops into single ones (docs/design.md, "A program"). Bits do not change:
// every instruction keeps its own rounding.
void fuse_pointwise(LocalProgram& local);
// Joins matmuls with the pointwise ops that read them, where one of these plugins takes that.
void fuse_products(LocalProgram& local, const std::vector<std::string>& kernels);
void place_values(RankPlan& plan);  // storages, views, launches
// Totals into buckets; `dealt` as in localize.
void fill_buckets(RankPlan& plan, const std::vector<int64_t>& dealt);
void order_one_by_one(RankPlan& plan);   // part of make_schedule: a call for each microbatch
void make_schedule(RankPlan& plan);      // order of all lanes
void stream_states(RankPlan& plan);      // part of make_schedule: windows of states of other tiers
void stash_activations(RankPlan& plan);  // part of make_schedule: those that wait in other tiers
void plan_memory(RankPlan& plan);        // slots, offsets, peaks
// Gives each an offset so that what is alive together is apart; returns the bytes that takes.
uint64_t lay_out(std::vector<Storage*>& storages, uint64_t alignment);
void verify(const RankPlan& plan);  // throws Error on a read before write, overlap or open exchange

}  // namespace orrery
