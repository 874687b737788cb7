// SPDX-License-Identifier: Apache-2.0
//
// The editing calls that a strategy is given, and what they work on.
#pragma once

#include <orrery/strategy.h>

#include <deque>
#include <memory>
#include <string>

#include "lower/edit.h"

// What a strategy holds while it edits.
struct orr_program {
  orrery::Program* program;
  orrery::Spread* spread;
  std::string strategy;
  const orrery::StrategyUse* use;
  orrery::StrategyStates* states = nullptr;   // null while forward
  bool forward = false;                       // not yet differentiated
  std::deque<orr_program>* beside = nullptr;  // where a driver writes more programs, null elsewhere
};

namespace orrery {

extern const orr_edit edit_table;

// What a hook's owner gave, until the host is through with it.
template <class Hook>
std::shared_ptr<Hook> kept(const Hook& hook) {
  return {new Hook(hook), [](Hook* h) {
            if (h->release) h->release(h->arg);
            delete h;
          }};
}

}  // namespace orrery
