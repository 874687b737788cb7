// SPDX-License-Identifier: Apache-2.0
//
// Which ranks have plans that are alike: one plan serves them all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "lower/lower.h"

namespace orrery {

using Kind = std::vector<int64_t>;

// Ranks of equal kind run programs of equal shapes and messages. Their coordinates agree on all
// axes but that of the batch, where their microbatches complete the same tree nodes (unless it also
// deals pieces of parameters), and those of cut values, where most shares differ only in which part
// they are of.
class RankKinds {
 public:
  // Asks strategies and scripts for what plans need of them. REQUIRES: the blueprint outlives this.
  // [main thread]
  explicit RankKinds(const Blueprint& b);

  // The ranks of every kind, in order.
  const std::vector<std::vector<int>>& alike() const { return members_; }
  // The index in alike() of a rank's kind.
  size_t kind_of(int rank) const { return kind_of_[static_cast<size_t>(rank)]; }
  // The kinds in groups that one plan serves, in order: at the same stage of a pipeline, shares of
  // tensors that differ at other stages alone.
  const std::vector<std::vector<size_t>>& planned_together() const { return together_; }
  // To plan the first rank of alike()[kind], with what kinds share. [any thread]
  LowerRequest request(size_t kind, const std::vector<std::string>& kernels) const;
  const std::vector<int64_t>& first_microbatches() const { return first_; }

 private:
  Kind describe(int rank) const;
  void group_kinds();
  // What the stage of a kind runs, in shapes by op, and which values it sends and receives.
  std::string stage_text(size_t kind, const std::vector<std::string>& shapes) const;
  const Program& program_of(size_t kind) const;
  // The rank's share of cut values, null if there are none.
  const Program* cut_for(int rank) const;

  const Blueprint& b_;
  std::vector<int64_t> first_;
  bool gathers_ = false;                        // ranks exchange the rows of samples
  std::vector<Program> cuts_;                   // by coordinate on the axes of cut values
  std::vector<int> alike_;                      // the first coordinate of equal shapes
  std::map<const Program*, StageHomes> homes_;  // of those that kinds are planned from
  std::vector<std::vector<int>> members_;
  std::vector<std::vector<size_t>> together_;
  std::vector<size_t> kind_of_;
};

// Makes the plan of a rank that of another one, of a kind that is planned together with its kind.
void turn_into(RankPlan& plan, int rank);

}  // namespace orrery
