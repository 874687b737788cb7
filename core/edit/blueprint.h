// SPDX-License-Identifier: Apache-2.0
//
// A program spread over ranks, before any rank's part of it is lowered: what runs and plans are
// made of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "edit/edit.h"
#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// What is decided before memory is touched; enough for `orrery plan`.
struct Blueprint {
  Program program;  // logical; what works by a clock of its own is in `mesh`
  Mesh mesh;
  int64_t microbatches = 1;
};

// What plans are drawn from: a step under a stack, spread over so many ranks. Traces anew. [main
// thread]
struct PlanSource {
  std::function<Blueprint(const std::vector<StrategyUse>& stack, int world)> draw;
  std::vector<StrategyUse> stack;
  std::vector<std::string> kernels;
  int world = 1;
};

}  // namespace orrery
