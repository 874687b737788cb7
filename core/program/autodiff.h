// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation of a program: it appends backward ops to the same program
// (docs/design.md, "Derivatives and the update").
#pragma once

#include <string>
#include <vector>

#include "program/op.h"
#include "program/program.h"

namespace orrery {

// The gradient of a loss with respect to one parameter, in two parts. `partial` has a sum over the
// batch for each use of the parameter, in the order of the uses: it is neither added up over ranks
// and microbatches nor divided by the summed weight. `regular` does not depend on the batch (the
// gradient of a penalty on the weights); kNone: there is none.
struct GradientParts {
  std::vector<ValueId> partial;
  ValueId regular = kNone;
};

struct Differentiated {
  std::vector<GradientParts> parts;  // parallel to `wrt`
  ValueId weight = kNone;  // the summed weight, by which every partial is to be divided; kNone: 1
  // Why sums over the batch must be complete before backward begins: the place and the op that
  // makes a nonlinear function of them; "": they need not.
  std::string needs_sums;
};

// Appends the backward ops of the scalar `loss`. The partial gradients are those of the loss times
// `scale`, a scalar of its dtype (kNone: 1). The loss may be any function of sums over the batch
// and of what does not depend on it. Where it is linear in the sums that depend on `wrt`, what they
// are divided by need not be the same (program/loss_terms.h); else backward begins when all these
// sums are complete. REQUIRES: loss is 0-d (else Error with the Lua line).
Differentiated differentiate(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                             ValueId scale = kNone);

// The cotangents of `wrt`, given those of `outputs`, through the ops from `first` on; kNone where
// there is none. A mean over the batch passes its cotangent on undivided.
std::vector<ValueId> pull_back(Program& p, const std::vector<ValueId>& outputs,
                               const std::vector<ValueId>& cotangents,
                               const std::vector<ValueId>& wrt, OpId first = 0);

// The derivatives of `y` by `wrt`, times `cotangent` (of y's type), as values that can be
// differentiated again. Derivatives of a mean over the batch are such means too. Throws Error with
// the current site's prefix if y does not depend on a value of `wrt`, or cannot be differentiated.
std::vector<ValueId> derivatives(Program& p, ValueId y, ValueId cotangent,
                                 const std::vector<ValueId>& wrt);

// The gradient of an op which `parts` can write as other ops that have gradients. `parts` appends
// them and returns what stands for the op's outputs, in their order.
void gradient_by_parts(Gradient& g, const Op& op,
                       std::vector<ValueId> (*parts)(Program&, const Op&));

}  // namespace orrery
