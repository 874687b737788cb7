// SPDX-License-Identifier: Apache-2.0
//
// Pinned host memory for the inputs and outputs of a program on a device: inputs are copied to the
// device before a run, outputs back after it. [main thread]
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "lower/rank_plan.h"
#include "run/device.h"

namespace orrery {

class Mirror {
 public:
  // `place` returns a value's memory on the device.
  Mirror(const RankPlan& plan, const Device& device,
         const std::function<orr_buffer(ValueId)>& place);

  // Null if the value is neither input nor output, or has no storage.
  std::byte* address(ValueId v) const;
  // Copy inputs to the device, and outputs back, in stream order. The host must not touch them
  // until an event recorded behind is done.
  void copy_in(const Stream& stream) const;
  void copy_out(const Stream& stream) const;

 private:
  using Places = std::function<orr_buffer(ValueId)>;
  struct Copy {
    orr_buffer here, there;
  };
  void add_inputs(const RankPlan& plan, const Places& place);
  void add_outputs(const RankPlan& plan, const Places& place);
  uint64_t room(uint64_t bytes);

  uint64_t bytes_ = 0;
  std::map<ValueId, uint64_t> at_;
  std::vector<Copy> in_, out_;
  std::shared_ptr<const orr_memory> memory_;
};

}  // namespace orrery
