// SPDX-License-Identifier: Apache-2.0
//
// Makes a training step of a loss (docs/design.md, "Derivatives and the update"): gradients, their
// totals over the batch, one division by the summed weight, clipping, the optimizer's update. Works
// on the logical program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"
#include "program/state.h"

namespace orrery {

// A strategy's function that runs in place of a parameter's gradient sum over `axis`. It gets this
// coordinate's summand of the mean gradient, a varying value (program/varying.h), in units that
// neither a loss scale nor a ragged batch changes. It returns a value that does not vary.
struct GradientHook {
  std::string axis, origin, line;
  std::function<ValueId(Program&, const std::shared_ptr<State>&, ValueId gradient)> exchange;
};

// Gradients that are scaled down together where their norm is larger than `limit`.
struct ClippedNorm {
  double limit = 0;
  std::vector<std::shared_ptr<State>> params = {};
};

struct TrainParts {
  std::function<ValueId(Program&, const std::shared_ptr<State>&, ValueId value, ValueId gradient)>
      update;                                     // empty: gradients become the given states
  std::vector<std::shared_ptr<State>> gradients;  // parallel to params, if `update` is empty
  std::vector<ClippedNorm> clips = {};            // each parameter in one of them, or in none
  bool tells_norm = false;                        // declare the output "grad_norm" in any case
  ValueId cotangent = kNone;  // multiplies the loss before it is differentiated; kNone: 1
};

// Values of a step whose update is written.
struct Measured {
  ValueId loss = kNone;
  ValueId squared_norm = kNone;                   // of all gradients, f32; kNone if not needed
  std::map<std::string, ValueId> gradients = {};  // as the update reads them, by parameter name
};

class Training {
 public:
  // Appends backward ops to `p`, whose forward ops end in `loss`, and declares the output "loss".
  Training(Program& p, ValueId loss, std::vector<std::shared_ptr<State>> params, TrainParts parts);

  // Declares the states that the update will need, so that strategies see them before the update is
  // written. Returns those that `p` did not have; updates for other batch shapes need the same
  // ones. Returns nothing if writing the update fails; update() will then throw the error.
  std::optional<std::vector<std::shared_ptr<State>>> declare_states(Program& p) const;

  // What makes mean gradients of the sums that backward gives: 1 / (weight of the batch, and
  // whatever multiplied the loss), f32; kNone: nothing does, as the loss does not depend on the
  // batch.
  ValueId scale(Program& p) const;

  // Why sums over the batch must be complete before backward begins (Differentiated); "": they need
  // not.
  const std::string& needs_sums() const { return needs_sums_; }

  // The loss's derivative by a parameter, whatever its update does with it; kNone if it is not one
  // of `params`, or the loss does not depend on it.
  ValueId gradient(Program& p, const State& param) const;

  // Appends the update of all params (in natural order of names) and optimizer states. With
  // clipping it declares the output "grad_norm", of all of them. Gradients pass through the hooks,
  // the last one first. `batch`: the axes over which they are summed. `norm`: compute the squared
  // norm in any case.
  Measured update(Program& p, const std::string& batch = "",
                  const std::vector<GradientHook>& hooks = {}, bool norm = false) const;

 private:
  std::vector<std::shared_ptr<State>> params_;
  TrainParts parts_;
  ValueId loss_, weight_ = kNone;
  std::string needs_sums_;
  std::vector<ValueId> values_;
  std::vector<std::vector<ValueId>> uses_;  // by parameter: the sums over the batch of its uses
  std::vector<ValueId> regular_;            // by parameter: its penalty's gradient, kNone if none
};

// Writes backward and update, without hooks.
void build_training(Program& p, ValueId loss, const std::vector<std::shared_ptr<State>>& params,
                    const TrainParts& parts);

}  // namespace orrery
