// SPDX-License-Identifier: Apache-2.0
#include "start_cost.h"

#include <cstdio>

#include <orrery/sdk/plugin.hpp>

namespace orr_cuda {

void StartCost::compiled() {
  const std::lock_guard lock(mutex_);
  ++compiled_;
}

void StartCost::compiling(double seconds) {
  const std::lock_guard lock(mutex_);
  compiling_ += seconds;
}

void StartCost::measured(double seconds) {
  const std::lock_guard lock(mutex_);
  ++measured_, measuring_ += seconds;
}

void StartCost::tell() {
  const std::lock_guard lock(mutex_);
  if (compiled_ + measured_ == 0) return;
  char text[200];
  snprintf(text, sizeof text,
           "cuda: %d expressions compiled in %.1f s, %d products measured in %.1f s; the next run "
           "finds them on disk",
           compiled_, compiling_, measured_, measuring_);
  orr::host->log(ORR_LOG_INFO, text);
  compiled_ = measured_ = 0, compiling_ = measuring_ = 0;
}

StartCost& start_cost() {
  static StartCost& all = *new StartCost;  // threads may outlive other statics
  return all;
}

}  // namespace orr_cuda
