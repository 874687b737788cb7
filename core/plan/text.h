// SPDX-License-Identifier: Apache-2.0
//
// What `orrery plan` prints: time, memory by category, every collective with bytes and cause,
// FLOPs; or, as the options of the command say, what the strategies change, or the largest
// microbatch that fits.
#pragma once

#include <cstdint>
#include <string>

#include "edit/blueprint.h"

namespace orrery {

// What the command line decided; set before the script starts.
struct PlanOptions {
  bool diff = false;  // print what the strategies change, for `rank`
  int rank = 0;
  uint64_t fit = 0;     // bytes that a rank has, 0: microbatches stay as they are
  std::string machine;  // file that describes the machine to plan for, "" assumes one
  std::string ops;      // file that gets the ops of rank 0 instead (plan/ops.h), "" none
  std::string svg;      // where the picture of a pipeline's schedule goes, "" nowhere
};
PlanOptions& plan_options();

// Runs and allocates nothing. [main thread]
std::string plan_text(const PlanSource& source);

}  // namespace orrery
