// SPDX-License-Identifier: Apache-2.0
//
// A loss made into a training step (docs/design.md, "Derivatives and the update"): gradients, their
// totals over the batch, one division by the summed weight, clipping, the optimizer's update. L1.
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

// What a strategy makes of a parameter's gradient in place of its sum over some ranks. It gets the
// mean gradient's summand of each coordinate of `axis` (program/varying.h): in units that neither a
// loss scale nor a ragged batch changes; it returns what all of them agree on.
struct GradientHook {
  std::string axis, origin, line;
  std::function<ValueId(Program&, const std::shared_ptr<State>&, ValueId gradient)> exchange;
};

struct TrainParts {
  std::function<ValueId(Program&, const std::shared_ptr<State>&, ValueId value, ValueId gradient)>
      update;                                     // empty: gradients become the given states
  std::vector<std::shared_ptr<State>> gradients;  // parallel to params, if `update` is empty
  double clip_norm = 0;
  ValueId cotangent = kNone;  // what multiplies the loss before it is differentiated; kNone: 1
};

// What a written update knows of its step.
struct Measured {
  ValueId loss = kNone;
  ValueId squared_norm = kNone;                   // of all gradients, f32; kNone if nobody needs it
  std::map<std::string, ValueId> gradients = {};  // as the update takes them, by the parameter
};

class Training {
 public:
  // Appends backward ops to `p`, whose forward ops end in `loss`, and declares the output "loss".
  Training(Program& p, ValueId loss, std::vector<std::shared_ptr<State>> params, TrainParts parts);

  // Declares the states that the update will need, so that strategies see them before it is there,
  // and returns those that `p` did not have: an update of other shapes needs the same. Nothing
  // where the update fails, which it will say by itself.
  std::optional<std::vector<std::shared_ptr<State>>> declare_states(Program& p) const;

  // Appends the update of all params (natural order of names) and optimizer states; declares with
  // clipping the output "grad_norm". Gradients go through the hooks, the last one first; `batch` is
  // the axes that deal the batch. `norm`: measures the squared norm in any case.
  Measured update(Program& p, const std::string& batch = "",
                  const std::vector<GradientHook>& hooks = {}, bool norm = false) const;

 private:
  std::vector<std::shared_ptr<State>> params_;
  TrainParts parts_;
  ValueId loss_, weight_ = kNone;
  std::vector<ValueId> values_;
  std::vector<std::vector<ValueId>> uses_;  // of a parameter: the sums over the batch of its uses
  std::vector<ValueId> regular_;            // kNone where a parameter has no penalty
};

// Both, without hooks.
void build_training(Program& p, ValueId loss, const std::vector<std::shared_ptr<State>>& params,
                    const TrainParts& parts);

}  // namespace orrery
