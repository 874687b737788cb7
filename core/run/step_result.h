// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a step, and whether a run of such numbers may go on.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "run/run.h"

namespace orrery {

// The result of steps that change nothing where the loss or the gradients are not finite: how many
// did so far (orr_edit.output).
inline constexpr const char* kSkippedSteps = "skipped_steps";

std::shared_ptr<StepResult> step_result(std::map<std::string, double> values, int64_t step);
bool has_value(const StepResult& result, const std::string& name);

class LossCheck {
 public:
  // Throws Error, beginning with `line`, if the loss is not finite, or if one step after another
  // was taken back because of that.
  void expect_good(StepResult& result, const std::string& line);
  // Steps of another run were loaded: the next step tells how many were skipped.
  void forget() { skipped_ = HUGE_VAL; }

 private:
  void count_skipped(StepResult& result, const std::string& prefix);

  double skipped_ = 0;  // steps that changed nothing, in all
  int in_a_row_ = 0;
};

}  // namespace orrery
