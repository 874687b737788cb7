// SPDX-License-Identifier: Apache-2.0
//
// Adds launches to a plan right behind the step that makes a value: those that copy or add a
// gradient into its bucket. In the plan's order [dw, dx, ...], with a copy behind dw: [dw, copy,
// dx, ...].
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "lower/kernels/launcher.h"
#include "lower/kernels/moved_storages.h"
#include "lower/rank_plan.h"

namespace orrery {

class LaunchInserter {
 public:
  // REQUIRES: `moves` and the plan outlive this, and no launch has been added to the plan's order
  // by others afterwards.
  LaunchInserter(RankPlan& plan, const MovedStorages& moves);

  // Adds the launches that `add` makes behind the first step that writes the storage. `add` gets
  // the op of that step, for its site. Those of one maker are in the order of the calls.
  using Add = std::function<void(Launcher&, const Op& maker)>;
  void behind_maker(int storage, const Add& add);

 private:
  bool writes(const Step& s, int storage) const;
  size_t maker_of(int storage) const;
  size_t place_behind(size_t maker) const;

  RankPlan& plan_;
  const MovedStorages& moves_;
  std::vector<Step> makers_;  // by storage: the first step of the plan's order that writes it
  std::set<int> added_;       // launches
};

}  // namespace orrery
