// SPDX-License-Identifier: Apache-2.0
//
// The schedule of a pipeline in units of time, for its picture.
#pragma once

#include "edit/blueprint.h"
#include "plan/json.h"

namespace orrery {

// For each stage its actions [segment ("F", "B", "W"), microbatch, chunk, begin, end] in order, of
// the pipeline whose ranks have the most microbatches. Calls strategies and scripts. [main thread]
Json schedule_json(const Blueprint& b);

}  // namespace orrery
