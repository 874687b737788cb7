// SPDX-License-Identifier: Apache-2.0
//
// The text about the time of a planned step.
#pragma once

#include <string>
#include <vector>

#include "plan/timeline.h"
#include "program/program.h"

namespace orrery {

// The time of a step, and the samples or tokens per second.
std::string step_text(const Program& logical, const std::vector<Spent>& spent,
                      const Machine& machine);
// How a rank spends that time.
std::string spent_text(const Spent& spent);

}  // namespace orrery
