// SPDX-License-Identifier: Apache-2.0
//
// A planned step as the JSON object that `orrery plan --json` prints; docs/plan.md has its schema.
#pragma once

#include <string>

#include "plan/figures.h"

namespace orrery {

std::string plan_json(const Blueprint& b, const PlannedStep& step, const Figures& figures,
                      const Machine& machine);

}  // namespace orrery
