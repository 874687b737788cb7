// SPDX-License-Identifier: Apache-2.0
//
// Makes the text that `orrery plan` prints: time, memory by category, every collective with its
// bytes and cause, FLOPs; with options of the command, what strategies change, or the largest
// microbatch that fits.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "edit/blueprint.h"

namespace orrery {

// Options of the command line; set before the script starts.
struct PlanOptions {
  bool diff = false;  // print what the strategies change, for `rank`
  int rank = 0;
  uint64_t fit = 0;         // bytes of memory that a rank has; 0: microbatches stay as they are
  std::string machine;      // file that describes the machine to plan for; "": one is assumed
  std::string ops;          // file that the ops of rank 0 are written to (plan/ops.h); "": none
  bool json = false;        // print one JSON object (plan/json.h)
  bool search = false;      // print the best layouts (scripts/orrery/search.lua)
  uint64_t memory = 0;      // of the search: bytes that a rank has; 0: any
  int seconds = 100;        // of the search: when it stops; 0: at the end
  std::FILE* out = stdout;  // what the plan is printed to
  std::string svg;          // file for the picture of a pipeline's schedule; "": none
};
PlanOptions& plan_options();

// Runs no step and allocates no tensor. [main thread]
std::string plan_text(const PlanSource& source);

}  // namespace orrery
