// SPDX-License-Identifier: Apache-2.0
//
// A loss made into a training step: gradients, their totals over the batch, one division by the
// summed weight, global-norm clipping, the optimizer's update (design sections 4 and 8). All L1.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/loss_scale.h"
#include "program/program.h"
#include "program/state.h"

namespace orrery {

struct TrainParts {
  std::function<ValueId(Program&, const std::shared_ptr<State>&, ValueId value, ValueId gradient)>
      update;                                     // empty: gradients become the given states
  std::vector<std::shared_ptr<State>> gradients;  // parallel to params, if `update` is empty
  double clip_norm = 0;
  const LossScale* scale = nullptr;
  int32_t wire = 0;  // dtype in which gradients are added over the batch; 0: in which they are made
};

// Completes `p`, whose forward ops end in `loss`. Declares outputs "loss" and, with clipping,
// "grad_norm", and the updates of params (natural order of names) and optimizer states.
void build_training(Program& p, ValueId loss, const std::vector<std::shared_ptr<State>>& params,
                    const TrainParts& parts);

}  // namespace orrery
