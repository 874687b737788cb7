// SPDX-License-Identifier: Apache-2.0
//
// The logical program of a run's step: traced from the script, differentiated, rewritten by
// strategies. [main thread]
#pragma once

#include <optional>
#include <vector>

#include "program/train.h"
#include "run/run.h"
#include "run/variant.h"

namespace orrery {

class StepBuilder {
 public:
  // REQUIRES: `spec` outlives this.
  explicit StepBuilder(const RunSpec& spec) : spec_(spec) {}
  StepBuilder(const StepBuilder&) = delete;

  // For batches of these shapes on `world` ranks. `microbatches`: as many as an earlier run had,
  // unless the script says; 0: as many as there are workers. Throws Error with the script's line.
  Blueprint draw(const BatchFields& batch, bool training, int world,
                 const std::vector<StrategyUse>& stack, int64_t microbatches);

 private:
  std::optional<Training> begin_training(Program& p, ValueId loss, bool training,
                                         const Asked& asked);
  void declare_states(Program& p, const Training& training);
  void check_outputs(const Blueprint& b) const;

  const RunSpec& spec_;
  StrategyStates states_;
  // Of the update, as the first draw has found them.
  std::optional<std::vector<std::shared_ptr<State>>> update_states_;
  std::vector<std::string> unbatched_;  // tensors among the second results of the last draw
};

}  // namespace orrery
