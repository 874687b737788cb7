// SPDX-License-Identifier: Apache-2.0
//
// The weights by which the means of a loss are divided: a sum over the batch, such as that of the
// labels that count. Gradients of means of one weight are divided once, at the end of backward.
#pragma once

#include "program/program.h"

namespace orrery {

// The weight of a mean before it was repeated to the dims of the mean.
ValueId unrepeated(const Program& p, ValueId weight);

// Whether two weights are the same sum: computed by equal ops of the same values, whatever wider
// dtype a mean reads them in, and however often they are repeated.
bool is_same_weight(const Program& p, ValueId a, ValueId b);

}  // namespace orrery
