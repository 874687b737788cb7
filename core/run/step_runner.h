// SPDX-License-Identifier: Apache-2.0
//
// Runs a compiled program on one batch and checks what it has computed: that the loss is finite,
// that the parameters are after a step of training, and with --verify that computing the step twice
// gives the same. [main thread]
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "run/finite.h"
#include "run/run.h"
#include "run/run_states.h"
#include "run/step_result.h"
#include "run/telling.h"
#include "run/variant.h"

namespace orrery {

enum class Purpose { training, evaluation, pass };  // pass: one batch of an evaluation of several

class StepRunner {
 public:
  // REQUIRES: all outlive this.
  StepRunner(const RunSpec& spec, const RunStates& states, int rank, int ranks, Telling& telling,
             Runtime& runtime)
      : spec_(spec),
        states_(states),
        rank_(rank),
        ranks_(ranks),
        telling_(telling),
        runtime_(runtime) {}

  // Throws Error if the step fails, or what it computed is not finite. Collective if the program
  // communicates.
  std::shared_ptr<StepResult> run(Variant& variant, const BatchFields& batch,
                                  const std::map<std::string, double>& scalars, int64_t step,
                                  Purpose purpose);
  // The result of a step or an evaluation that gave these values. Throws Error for a loss that is
  // not finite, of a step.
  std::shared_ptr<StepResult> result_of(std::map<std::string, double> values, int64_t step,
                                        bool evaluation);
  // What the step has said that failed, and may have left states half updated; "": none has.
  const std::string& failed() const { return failed_; }
  // A program was made, maybe where another one was that has been given up.
  void made(const Variant& variant) { checks_.erase(&variant); }
  // Forgets what went before, after a checkpoint was loaded.
  void forget() { failed_.clear(), loss_check_.forget(); }

 private:
  bool is_verified(int64_t step) const;
  void verify(Variant& variant, const std::function<void()>& set, int64_t step);
  std::shared_ptr<StepResult> fetched(Variant& variant, int64_t step, Purpose purpose);
  void check_parameters(Variant& variant, int64_t step);

  const RunSpec& spec_;
  const RunStates& states_;
  int rank_, ranks_;
  Telling& telling_;
  Runtime& runtime_;
  LossCheck loss_check_;
  std::string failed_;
  std::map<const Variant*, std::unique_ptr<FiniteCheck>> checks_;
};

}  // namespace orrery
