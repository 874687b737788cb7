// SPDX-License-Identifier: Apache-2.0
//
// Looks at what every launch has written, and names the first op that makes a value that is not
// finite (`orrery run --check-nan`). [main thread]
#pragma once

#include <vector>

#include "lower/rank_plan.h"
#include "run/device.h"

namespace orrery {

// "mlp.lua:7: Net.fc1: the gradient, matmul", for messages.
std::string place_of(const Op& op);
// The elements of a tensor, one after another. REQUIRES: work on it is done.
std::vector<std::byte> elements_at(const Device& device, const orr_buffer& x,
                                   const Strided& layout);

class CheckFinite {
 public:
  // REQUIRES: both outlive this object.
  CheckFinite(const RankPlan& plan, const Device& device) : plan_(plan), device_(device) {}

  void set_step(int64_t step) { step_ = step; }
  // `at`: the memory of the launch's inputs, then of its outputs. Throws Error if an output holds
  // NaN or infinity. Infinity is allowed if the op's expression has an infinite constant, as masks
  // have, and where it comes from such an op. REQUIRES: the launch is done.
  void after(const Launch& launch, const orr_buffer* at);

 private:
  // The first element of x that is not finite, "nan at [2,5] of f32[8,64]"; "" if there is none.
  std::string found(const orr_buffer& x, const Strided& layout) const;

  const RankPlan& plan_;
  const Device& device_;
  int64_t step_ = 0;
  bool masks_ = false;  // an op with an infinite constant has run
};

}  // namespace orrery
