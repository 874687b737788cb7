// SPDX-License-Identifier: Apache-2.0
//
// What a planned step says as a whole: how much of the machine it uses, where the ranks' time goes,
// and what binds it.
#pragma once

#include <string>
#include <vector>

#include "plan/planned.h"

namespace orrery {

// A part of the time of all ranks. `what`: "products", "arithmetic", "memory" or "launches" of
// compute; "exposed": compute waits for bytes on `axis`; "offload": it waits for copies from or to
// the memory tier `axis`; "bubble" or "blocked": it waits for ranks of the axis that are not ready,
// "bubble" where the axis has a pipeline's stages; "imbalance": it has ended and others have not.
struct TimePart {
  std::string what, axis;
  double share = 0;  // the shares of a step add up to 1
};

struct Figures {
  double model_flops = 0;  // of the products of the model on one process
  double mfu = 0;          // of what all ranks could compute in the step's time: 0 to 1
  // The same as papers count it: FLOPs of the model by convention, of the maker's peak; 0: not
  // known.
  double nominal_mfu = 0;
  std::vector<TimePart> parts;  // largest first
};

Figures figures_of(const PlannedStep& step, const Blueprint& b, const Machine& machine,
                   double model_flops, double convention_flops = 0);
// What takes most of the ranks' time, as one sentence.
std::string bottleneck(const Figures& figures);

// The parts of a rank's time, largest first. [any thread]
std::vector<TimePart> time_parts(const PlannedRanks& kind, const Mesh& mesh);

}  // namespace orrery
