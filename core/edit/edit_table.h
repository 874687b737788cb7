// SPDX-License-Identifier: Apache-2.0
//
// The table of editing calls that a strategy gets, and the program handle that they work on.
#pragma once

#include <orrery/strategy.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "edit/edit.h"

// The handle that a strategy passes to each editing call.
struct orr_program {
  orrery::Program* program;
  orrery::Mesh* mesh;
  orrery::Asked* asked;
  std::string strategy;
  const orrery::StrategyUse* use;
  orrery::StrategyStates* states = nullptr;
  bool forward = false;  // not yet differentiated
  bool training = true;  // the program is a training step's
  bool retyped = false;  // dtypes were changed, and must be checked
  // Phase and site of new ops before the first call of `beside`.
  struct Standing {
    orrery::Phase phase;
    orrery::Site site;
  };
  std::optional<Standing> before = {};
  // Ops from `first` on, up to the next entry's, stand right before the op `before`; kNone: as
  // order_ops moves them.
  struct Stand {
    orrery::OpId first, before;
  };
  std::vector<Stand> stands = {};
  std::deque<orr_program>* others = nullptr;  // programs that a driver adds; null elsewhere
};

namespace orrery {

extern const orr_edit edit_table;

// What a strategy's hook needs to edit a program that is written after the strategy's own edits.
class LaterEdits {
 public:
  explicit LaterEdits(const orr_program* now)
      : use_(*now->use), mesh_(now->mesh), asked_(now->asked), states_(now->states) {}
  const StrategyUse& use() const { return use_; }
  // A handle on this program. REQUIRES: this outlives it.
  orr_program of(Program& p) const { return {&p, mesh_, asked_, use_.name, &use_, states_}; }

 private:
  StrategyUse use_;
  Mesh* mesh_;
  Asked* asked_;
  StrategyStates* states_;
};

// Is called after the edits of one strategy: puts ops in execution order, checks dtypes, and undoes
// `beside`.
void settle(orr_program& edited);

}  // namespace orrery
