// SPDX-License-Identifier: Apache-2.0
//
// Builds the logical program of a run's step: traces the script, differentiates the loss, and lets
// strategies edit the program. [main thread]
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/over_batches.h"
#include "program/train.h"
#include "run/run.h"
#include "run/variant.h"

namespace orrery {

class StepBuilder {
 public:
  // REQUIRES: `spec` outlives this.
  explicit StepBuilder(const RunSpec& spec) : spec_(spec) {}
  StepBuilder(const StepBuilder&) = delete;

  // Builds the step for batches of these shapes on `world` ranks. `microbatches`: 0: one for each
  // rank that gets samples. Throws Error with the script's line.
  Blueprint build(const BatchFields& batch, bool training, int world,
                  const std::vector<StrategyUse>& stack, int64_t microbatches);
  // The same of a program that evaluates one batch of several; its results are those of all so far.
  Blueprint build_pass(const BatchFields& batch, int world, const std::vector<StrategyUse>& stack,
                       int64_t microbatches, OverBatches& over);
  // What to tell the user of the training step that was built last, in sentences; some may be "":
  // which parameters it leaves alone, and what the number of microbatches depends on.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  Blueprint build(const BatchFields& batch, bool training, int world,
                  const std::vector<StrategyUse>& stack, int64_t microbatches, OverBatches* over);
  std::shared_ptr<State> sum_of(size_t i, const Type& type);
  std::optional<Training> begin_training(Program& p, ValueId loss, bool training,
                                         ValueId cotangent);
  void complete_outputs(Program& p, const std::optional<Training>& training);
  void give_gradients(Program& p, const Training& training) const;
  void declare_states(Program& p, const Training& training);
  void check_outputs(const Blueprint& b) const;

  const RunSpec& spec_;
  StrategyStates states_;
  // The states of the update, found when the first step was built that left these parameters alone.
  std::map<std::vector<bool>, std::optional<std::vector<std::shared_ptr<State>>>> update_states_;
  std::map<std::string, std::shared_ptr<State>> sums_;  // of passes over several batches
  // Auxiliary outputs of the last step that are tensors and do not depend on the batch.
  std::vector<std::string> unbatched_;
  std::vector<std::string> remarks_;
};

}  // namespace orrery
