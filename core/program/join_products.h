// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a weight that a recurrence reads at every step. Each step gives it a product of
// few rows, as large as the weight; one product of all rows is written once.
#pragma once

#include <vector>

#include "program/program.h"

namespace orrery {

// `terms`, summands of one gradient, where those that are products of few rows in one module, over
// the batch, are one product of their operands' rows one behind the other. The order of the others
// stays; a joined one takes the place of its first.
std::vector<ValueId> join_products(Program& p, const std::vector<ValueId>& terms);

}  // namespace orrery
