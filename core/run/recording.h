// SPDX-License-Identifier: Apache-2.0
//
// Launches that follow one another in a schedule, recorded once where the device offers it and
// launched together from then on: their buffers never change, and what does is a device value.
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

  // Runs the launches that begin at step i as one and returns the step behind them, or i if none
  // begin there. The first time `launch` is called with each of their steps, to be recorded.
  size_t play(size_t i, const std::function<void(size_t)>& launch);
  // Buffers have moved: all is recorded anew. REQUIRES: nothing is pending.
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
