// SPDX-License-Identifier: Apache-2.0
//
// The editing calls that a strategy is given, and what they work on.
#pragma once

#include <orrery/strategy.h>

#include <deque>
#include <optional>
#include <string>

#include "edit/edit.h"

// What a strategy holds while it edits.
struct orr_program {
  orrery::Program* program;
  orrery::Mesh* mesh;
  std::string strategy;
  const orrery::StrategyUse* use;
  orrery::StrategyStates* states = nullptr;
  bool forward = false;  // not yet differentiated
  bool training = true;  // the program is a training step's
  bool retyped = false;  // some types may not fit
  // Where ops belonged before `beside`.
  struct Standing {
    orrery::Phase phase;
    orrery::Site site;
  };
  std::optional<Standing> before = {};
  std::deque<orr_program>* others = nullptr;  // that a driver writes as well; null elsewhere
};

namespace orrery {

extern const orr_edit edit_table;

// After the calls of one strategy: ops are in order, types fit, and new ops belong where they did.
void settle(orr_program& edited);

}  // namespace orrery
