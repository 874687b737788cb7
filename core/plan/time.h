// SPDX-License-Identifier: Apache-2.0
//
// The text about the time of a planned step.
#pragma once

#include <string>

#include "plan/figures.h"
#include "program/program.h"

namespace orrery {

// The time of a step, and the samples or tokens per second.
std::string step_text(const Program& logical, double seconds, const Machine& machine);
// How much of the machine a step uses, and what binds it.
std::string figures_text(const Figures& figures, double seconds);
// How a rank spends that time.
std::string spent_text(const PlannedRanks& kind, const Mesh& mesh);

}  // namespace orrery
