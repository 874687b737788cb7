// SPDX-License-Identifier: Apache-2.0
//
// The time of a planned step in words.
#pragma once

#include <string>
#include <vector>

#include "plan/timeline.h"
#include "program/program.h"

namespace orrery {

// How long a step takes, and how many samples or tokens a second that is.
std::string step_text(const Program& logical, const std::vector<Spent>& spent,
                      const Machine& machine);
// What a rank does in that time.
std::string spent_text(const Spent& spent);

}  // namespace orrery
