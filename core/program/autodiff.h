// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation of a program, as ops of the same program
// (docs/design.md, "Derivatives and the update").
#pragma once

#include <vector>

#include "program/op.h"
#include "program/program.h"

namespace orrery {

// The gradient of a loss with respect to one parameter, in the parts that have to stay apart:
// `partial` holds one sum over the batch per use site, in the order of the uses, not yet divided by
// the summed weight; `regular` is what does not depend on the batch (a penalty on the weights).
struct GradientParts {
  std::vector<ValueId> partial;
  ValueId regular = kNone;
};

struct Differentiated {
  std::vector<GradientParts> parts;  // parallel to `wrt`
  ValueId weight = kNone;            // sum over the batch that divides every partial
};

// Appends the backward ops of the scalar `loss`; the partial gradients are those of `scale` times
// the loss (kNone: 1), a scalar of its dtype. A term that is made of the whole batch otherwise
// counts as the mean of it over the samples. REQUIRES: loss is 0-d, a mean over the batch plus such
// terms and terms that do not depend on it; all its means share one weight (else Error with the Lua
// line).
Differentiated differentiate(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                             ValueId scale = kNone);

// The cotangents of `wrt` given those of `outputs`, through the ops from `first` on: the bare
// mechanism, for one phase. kNone where none arrives. A mean over the batch passes its cotangent on
// undivided.
std::vector<ValueId> pull_back(Program& p, const std::vector<ValueId>& outputs,
                               const std::vector<ValueId>& cotangents,
                               const std::vector<ValueId>& wrt, OpId first = 0);

// The derivatives of `y` by `wrt`, times `cotangent` (of y's type), as values that can be
// differentiated again. Of a mean over the batch they are means over it, too. Throws Error with the
// current site's prefix where y depends on none of a value, and where they cannot be formed.
std::vector<ValueId> derivatives(Program& p, ValueId y, ValueId cotangent,
                                 const std::vector<ValueId>& wrt);

// The gradient of an op that `parts` writes as ops which have one: of its outputs, in their order.
void gradient_by_parts(Gradient& g, const Op& op,
                       std::vector<ValueId> (*parts)(Program&, const Op&));

}  // namespace orrery
