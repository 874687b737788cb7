// SPDX-License-Identifier: Apache-2.0
//
// The places that a step of the schedule reads and writes.
#pragma once

#include "lower/rank_plan.h"

namespace orrery {

// Calls read(place) for all that the step reads, then write(place) for all that it writes.
template <class Plan, class Read, class Write>
void each_place(Plan& plan, const Step& step, const Read& read, const Write& write) {
  if (step.kind == Step::launch) {
    auto& l = plan.launches[static_cast<size_t>(step.index)];
    for (auto& x : l.in_at) read(x);
    for (auto& x : l.out_at) write(x);
  } else {
    auto& e = plan.exchanges[static_cast<size_t>(step.index)];
    if (e.send.storage != kNone) read(e.send);
    if (e.recv.storage != kNone) write(e.recv);
  }
}

// The same with the numbers of the storages.
template <class Read, class Write>
void each_touched(const RankPlan& plan, const Step& step, const Read& read, const Write& write) {
  each_place(
      plan, step, [&](const Place& x) { read(x.storage); },
      [&](const Place& x) { write(x.storage); });
}

}  // namespace orrery
