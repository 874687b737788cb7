// SPDX-License-Identifier: Apache-2.0
//
// Checks that all ranks compute alike: hosts may have other plugins installed. [main thread]
#pragma once

#include <string>

#include "lower/rank_plan.h"

namespace orrery {

// Throws Error, on all ranks, with `line` and the first op that two ranks compute by kernels with
// other numerics ids, though kind, attributes, shapes, strides and dtypes are the same: copies of
// the parameters would come to differ by rounding. Ops whose numerics may be fast are not compared.
// Collective.
void compare_kernels(const RankPlan& plan, const std::string& line);

}  // namespace orrery
