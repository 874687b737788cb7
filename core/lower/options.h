// SPDX-License-Identifier: Apache-2.0
//
// What the user wrote for a strategy, as the plugin asks for it.
#pragma once

#include <orrery/strategy.h>

#include "lower/edit.h"

namespace orrery {

// REQUIRES: `use` outlives the result.
orr_options options_of(const StrategyUse& use);
// Throws Error for an option that the strategy does not know or that has the wrong type.
void check_options(const StrategyUse& use, const orr_strategy_info& info);

}  // namespace orrery
