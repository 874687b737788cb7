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

// The exchange that `op`, an op of the local program p, is on this rank. Its places (send, recv)
// are not filled in.
Exchange exchange_of(const Program& p, const Op& op, const Mesh& mesh, int rank);

class Launcher {
 public:
  explicit Launcher(RankPlan& plan) : plan_(plan), kernels_(plan.kernel_names) {}

  // Launches and storages that are added from now on belong to this segment and chunk.
  void at(Segment segment, int chunk) { segment_ = segment, chunk_ = chunk; }

  // Adds a storage. If the segment has a call for each microbatch, each of these has a slot.
  int new_storage(uint64_t bytes, const std::string& category);
  // Adds a storage for a tensor that lives within the step, and returns its place.
  Place new_place(const Type& type);
  // Whether a kernel writes the op's only result in this layout, of these inputs or of copies.
  bool writes(const Op& op, const std::vector<Strided>& in, const Strided& out) const;
  // Adds a launch of the op on these places. Where no kernel takes their strides, copies are added
  // before and behind it.
  void add(const Op& op, std::vector<Place> in, const std::vector<Place>& out);
  // Adds a copy; a cast if `to` has another dtype. `reason`: the op that needs it. Where no kernel
  // takes its strides, it is a copy for each of its rows.
  void copy(const Op& reason, const Place& from, const Place& to);
  Place contiguous_copy(const Op& reason, const Place& from,
                        int32_t dtype = 0);  // 0: the dtype of `from`
  void post(Exchange exchange);

 private:
  void copy_nested(const Op& op, KernelForm& form, std::vector<Place>& in,
                   const std::vector<Place>& out);
  bool copies(const Op& copy, const Place& from, const Place& to, int& plugin) const;
  void add_copy(const Op& copy, const Place& from, const Place& to, int64_t n);
  Place transposed_copy(const Op& reason, const Place& from);
  [[noreturn]] void refuse_layouts(const Launch& launch) const;
  void add_beside(const Op& op, const std::vector<Place>& in, const std::vector<Place>& out);
  void add_unfused(const Op& op, const std::vector<Place>& in, const std::vector<Place>& out);
  void add_widened(const Op& op, std::vector<Place> in, const std::vector<Place>& out);
  void add_of_wider_factors(const Op& op, std::vector<Place> in, const std::vector<Place>& out);
  void note_padding(Launch& launch) const;
  void finish(Launch launch);

  RankPlan& plan_;
  KernelChoice kernels_;
  Segment segment_ = Segment::update;
  int chunk_ = 0;
};

}  // namespace orrery
