// SPDX-License-Identifier: Apache-2.0
//
// A stack of strategies on a program that has its update already.
#pragma once

#include "lower/edit.h"

namespace program_test {

inline orrery::Spread applied(orrery::Program& p, const std::vector<orrery::StrategyUse>& stack,
                              int world) {
  orrery::StrategyStates states;
  orrery::Spread spread;
  orrery::apply_strategies(p, stack, world, states, spread);
  orrery::complete_step(p, spread, 1, true);
  return spread;
}

}  // namespace program_test
