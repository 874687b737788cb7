// SPDX-License-Identifier: Apache-2.0
//
// The places that a step of the schedule reads and writes, and copies between tiers.
#pragma once

#include "lower/rank_plan.h"

namespace orrery {

// Calls read(place) for every place that the step reads, then write(place) for every one that it
// writes.
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

// Appends an exchange that copies a whole storage to another. `tier` is the tier that it copies
// from, or with `to_tier` copies to.
inline int add_copy(RankPlan& plan, const std::string& name, int from, int to, Tier tier,
                    bool to_tier, int32_t dtype = ORR_U8) {
  Exchange e;
  e.name = name, e.tier = tier, e.to_tier = to_tier, e.dtype = dtype;
  e.count = static_cast<int64_t>(plan.storage(from).bytes) / orr_dtype_bytes(dtype);
  const Strided flat = Strided::contiguous({dtype, {e.count}});
  e.send = {from, 0, flat}, e.recv = {to, 0, flat};
  plan.exchanges.push_back(std::move(e));
  return static_cast<int>(plan.exchanges.size()) - 1;
}

}  // namespace orrery
