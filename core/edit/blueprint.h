// SPDX-License-Identifier: Apache-2.0
//
// An edited program with its mesh, before it is lowered for any rank. Runs and plans are made of
// it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "edit/asked.h"
#include "edit/edit.h"
#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// Everything that is decided before memory is allocated; enough for `orrery plan`.
struct Blueprint {
  Program program;  // the logical program of the step
  Mesh mesh;
  Asked asked;  // with the programs that run between steps, or beside them
  int64_t microbatches = 1;
};

// Makes the blueprint of a step for any stack, number of ranks and of microbatches (0: those of the
// script), so that plans can be compared. Each call traces the script anew. [main thread]
struct PlanSource {
  using Build = Blueprint(const std::vector<StrategyUse>& stack, int world, int64_t microbatches);
  std::function<Build> build;
  std::vector<StrategyUse> stack;
  std::vector<std::string> kernels;
  int world = 1;
};

}  // namespace orrery
