// SPDX-License-Identifier: Apache-2.0
//
// What a search over layouts asks (scripts/orrery/search.lua): facts about the model, and the plan
// of the same step under another stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/figures.h"

namespace orrery {

// Of the step that one process takes, without strategies.
struct ModelFacts {
  double product_flops = 0;    // of the matrix products in forward and backward
  double product_bytes = 0;    // of their results in forward, for the whole batch
  double parameter_bytes = 0;  // of the parameters
  double state_bytes = 0;      // of the optimizer's states
  int64_t samples = 0;
  Machine machine;
  double product_rate = 0;  // FLOP/s in products: the best of any dtype
};
// Calls strategies and scripts, as does try_layout. [main thread]
ModelFacts model_facts(const PlanSource& source);

struct Trial {
  double seconds = 0;
  uint64_t bytes = 0;  // of the rank that needs most
  Figures figures;
};
// `microbatches`: 0: those of the script. Throws Error if the engine refuses the stack.
Trial try_layout(const PlanSource& source, const std::vector<StrategyUse>& stack,
                 int64_t microbatches, const Machine& machine, double model_flops);

}  // namespace orrery
