// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a step, and the check of whether training may go on after them.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "run/run.h"

namespace orrery {

// The output of strategies that skip steps whose loss or gradients are not finite
// (orr_edit.output): how many steps were skipped so far.
inline constexpr const char* kSkippedSteps = "skipped_steps";

std::shared_ptr<StepResult> step_result(std::map<std::string, double> values, int64_t step);
bool has_value(const StepResult& result, const std::string& name);

class LossCheck {
 public:
  // Throws Error, beginning with `line`, if the loss is not finite, or if too many steps one after
  // another were skipped because of that.
  void expect_good(StepResult& result, const std::string& line);
  // Forgets the count after a checkpoint was loaded; the next step gives the loaded run's.
  void forget() { skipped_ = HUGE_VAL; }

 private:
  void count_skipped(StepResult& result, const std::string& prefix);

  double skipped_ = 0;  // steps that were skipped, in all
  int in_a_row_ = 0;
};

}  // namespace orrery
