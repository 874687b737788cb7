// SPDX-License-Identifier: Apache-2.0
//
// Records launches that follow one another in a schedule, if the device can, and launches them
// together from then on. That is possible because their buffers never change, and numbers that
// change are values on the device.
#pragma once

#include <functional>
#include <vector>

#include "lower/rank_plan.h"
#include "run/device.h"

namespace orrery {

class Recording {
 public:
  Recording(const RankPlan& plan, const Device& device, const Stream& stream);
  ~Recording();
  Recording(const Recording&) = delete;

  // Runs the launches that are recorded together from step i on, and returns the step behind them;
  // i if no recording begins there. The first time, `launch` is called with each of these steps,
  // and recorded.
  size_t play(size_t i, const std::function<void(size_t)>& launch);
  // Drops all recordings, because buffers have moved. REQUIRES: no work is pending.
  void forget();

 private:
  struct Span {
    size_t begin, end;
    orr_graph* graph = nullptr;
  };
  void find_spans(const RankPlan& plan);
  bool record(Span& span, const std::function<void(size_t)>& launch);

  const Device& device_;
  const Stream& stream_;
  std::vector<Span> spans_;
  std::vector<int> span_at_;  // by step: the span that begins there, or kNone
  bool offered_ = true;       // until the device says that it cannot
};

}  // namespace orrery
