// SPDX-License-Identifier: Apache-2.0
//
// Adds work to a plan: storages, launches with the best kernel for them, exchanges, and the steps
// that carry them out, in the plan's template order.
#pragma once

#include <string>
#include <vector>

#include "lower/kernel_choice.h"
#include "lower/rank_plan.h"

namespace orrery {

class Launcher {
 public:
  explicit Launcher(RankPlan& plan) : plan_(plan), kernels_(plan.kernel_names) {}

  // What follows belongs to this segment and chunk.
  void at(Segment segment, int chunk) { segment_ = segment, chunk_ = chunk; }

  // A storage of its own for every microbatch if the segment has a call for each.
  int new_storage(uint64_t bytes, const std::string& category);
  // The op on these places; with copies before and after where no kernel can take them as they lie.
  void add(const Op& op, std::vector<Place> in, const std::vector<Place>& out);
  // `to` is of another dtype: a cast.
  void copy(const Op& reason, const Place& from, const Place& to);
  Place contiguous_copy(const Op& reason, const Place& from,
                        int32_t dtype = 0);  // 0: that of `from`
  void post(Exchange exchange);

 private:
  void add_beside(const Op& op, const std::vector<Place>& in, const std::vector<Place>& out);
  void add_apart(const Op& op, const std::vector<Place>& in, const std::vector<Place>& out);
  void add_widened(const Op& op, std::vector<Place> in, const std::vector<Place>& out);
  void finish(Launch launch);

  RankPlan& plan_;
  KernelChoice kernels_;
  Segment segment_ = Segment::update;
  int chunk_ = 0;
};

}  // namespace orrery
