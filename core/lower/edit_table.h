// SPDX-License-Identifier: Apache-2.0
//
// The editing calls that a strategy is given, and what they work on.
#pragma once

#include <orrery/strategy.h>

#include <string>

#include "lower/edit.h"

// What a strategy holds while it edits.
struct orr_program {
  orrery::Program* program;
  orrery::Spread* spread;
  std::string strategy;
  const orrery::StrategyUse* use;
  orrery::StrategyStates* states = nullptr;  // null while forward
  bool forward = false;                      // not yet differentiated
};

namespace orrery {

extern const orr_edit edit_table;

}  // namespace orrery
