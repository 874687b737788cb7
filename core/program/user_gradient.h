// SPDX-License-Identifier: Apache-2.0
//
// Values whose gradient the user defines by a function of them (Program::with_gradient).
#pragma once

#include <functional>
#include <vector>

#include "program/program.h"

namespace orrery {

// Returns one cotangent for each of xs (kNone: none), of y's and these values.
using GradientFunction =
    std::function<std::vector<ValueId>(ValueId dy, ValueId y, const std::vector<ValueId>& xs)>;

// y, whose cotangent goes to xs by `function`. The function gets the value that is returned as y,
// so that what it computes from this is differentiated by the same rule.
ValueId with_gradient(Program& p, ValueId y, const std::vector<ValueId>& xs,
                      GradientFunction function);

// The same of other values: `op` is the op of such a y but for its inputs, y and xs. Called twice
// with the same, it gives the same value. kNone if the gradient is not that of such a function.
ValueId with_gradient_again(Program& p, const Op& op);

}  // namespace orrery
