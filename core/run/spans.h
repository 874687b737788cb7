// SPDX-License-Identifier: Apache-2.0
//
// What the lanes of a rank did in one step, and when: noted while the step runs, sent to the
// observers after it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "run/observers.h"

namespace orrery {

class Spans {
 public:
  struct Mark {
    double begin = 0, end = 0;  // unix seconds; end 0: it has not run
    int lane = ORR_LANE_COMPUTE;
  };

  // Begins to note a step of this plan.
  void begin(const RankPlan& plan) { marks_.assign(plan.schedule.size(), {}); }
  // The mark of step i of the schedule. Its address stays until the next `begin`; of a post, the
  // lane that carries it out writes it.
  Mark& at(size_t i) { return marks_[i]; }

  // Sends all spans, and the memory that was in use. REQUIRES: no lane is at work. [main thread]
  void send(const RankPlan& plan, int64_t step, Observers& to) const;

  // Runs `work` and notes when.
  static void run(Mark& mark, const std::function<void()>& work);
  static double now();

 private:
  std::vector<Mark> marks_;
};

// Bytes of the arena that are in use, by category, at the step of the schedule where most are.
std::map<std::string, uint64_t> peak_of_arena(const RankPlan& plan);

}  // namespace orrery
