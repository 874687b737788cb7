// SPDX-License-Identifier: Apache-2.0
//
// Groups ranks whose plans are alike, so that one plan is made for all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edit/blueprint.h"
#include "lower/lower.h"

namespace orrery {

using Kind = std::vector<int64_t>;

// Ranks may differ in nothing but the sizes of their shards of training state. exact: each size is
// a kind of its own. largest: all are one kind, which is planned for a rank with the largest
// shards. With thousands of ranks that is much quicker, and time and memory hardly differ.
enum class ShardSizes { exact, largest };

// Ranks of equal kind run programs with equal shapes and messages. Their coordinates may differ on
// two sorts of axes. On batch axes, if their microbatches complete equally many tree nodes and
// their shards of training state have equal shapes (partition/passes.h). On axes over which values
// are cut, if their parts have equal shapes.
class RankKinds {
 public:
  // Calls strategies and scripts for schedules, so that other threads need not. REQUIRES: the
  // blueprint outlives this. [main thread]
  explicit RankKinds(const Blueprint& b, ShardSizes sizes = ShardSizes::exact);

  // The ranks of every kind, in order.
  const std::vector<std::vector<int>>& alike() const { return members_; }
  // The index in alike() of a rank's kind.
  size_t kind_of(int rank) const { return kind_of_[static_cast<size_t>(rank)]; }
  // The kinds in groups for which one plan is made, in order. The kinds of a group are at the same
  // stage of a pipeline, and their shares differ in shape only at other stages.
  const std::vector<std::vector<size_t>>& planned_together() const { return together_; }
  // The rank of alike()[kind] that is planned for all: the first one, if their plans are alike.
  int planned_rank(size_t kind) const;
  // The request to lower that rank; it has what this object has computed already. [any thread]
  LowerRequest request(size_t kind, const std::vector<std::string>& kernels) const;
  const std::vector<int64_t>& first_microbatches() const { return first_; }

 private:
  Kind describe(int rank) const;
  void find_shards();
  // A coordinate on the axis that gradients are summed over, that stands for the rank's.
  int shard_of(int rank) const;
  // The first coordinate on the axes of cut values with a share of equal shapes; and the stage.
  std::pair<int, int> share_and_stage(int rank) const;
  const StageRanks* stage_ranks_of(const Program& p);
  // shapes[c][i] is that of op i of cuts_[c].
  void group_kinds(const std::vector<std::vector<std::string>>& shapes);
  // A text with the shapes of the ops that the stage of a kind runs, and the values that it sends
  // and receives. shapes[i] is that of op i.
  std::string stage_text(size_t kind, const std::vector<std::string>& shapes) const;
  const Program& program_of(size_t kind) const;
  // The rank's share of cut values, null if there are none.
  const Program* cut_for(int rank) const;

  const Blueprint& b_;
  const ShardSizes sizes_;
  std::vector<int64_t> first_;
  bool gathers_ = false;       // the program gathers the rows of samples
  std::vector<Program> cuts_;  // by coordinate on the axes of cut values: the share
  std::vector<int> alike_;     // by coordinate there: the first one with a share of equal shapes
  // Where training state is sharded, by share of cut values (alike_) and stage: by coordinate on
  // the axis that gradients are summed over, the first coordinate with pieces of equal shapes, or
  // with the largest.
  std::map<std::pair<int, int>, std::vector<int>> shards_;
  std::map<const Program*, StageRanks> stage_ranks_;  // of the programs that kinds are planned from
  std::vector<std::vector<int>> members_;
  std::vector<std::vector<size_t>> together_;
  std::vector<size_t> kind_of_;
};

// Turns a plan into that of another rank, whose kind is planned together with the plan's.
void turn_into(RankPlan& plan, int rank);

}  // namespace orrery
