// SPDX-License-Identifier: Apache-2.0
//
// Who makes plans for scripts. The core plans nothing beyond the step that it runs: a program that
// has the library `core/plan` sets it here, and the command line says what is asked of it.
#pragma once

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "edit/blueprint.h"

namespace orrery {

// The exit code of `orrery plan --must-fit` for a plan that does not.
constexpr int kDoesNotFit = 78;

struct Planner {
  // Answers one question about a step (core/plan/planner.h). Throws Error. [main thread]
  std::function<nlohmann::json(const PlanSource& source, const nlohmann::json& question)> answer;
  // The options of the command line, for scripts/orrery/plan.lua.
  nlohmann::json options = nlohmann::json::object();
  std::FILE* out = stdout;  // what the plan is printed to
};

inline Planner& planner() {
  static Planner one;
  return one;
}

}  // namespace orrery
