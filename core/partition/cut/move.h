// SPDX-License-Identifier: Apache-2.0
//
// The ops that move a value from one layout over the ranks of an axis to another.
#pragma once

#include "program/cut.h"

namespace orrery {

// What moving a value costs, in elements sent per element of the value; more than kNever:
// impossible.
constexpr double kNever = 1e6;
double move_cost(const Cut& from, const Cut& to, int ranks);

// Appends the ops that make `to` of x, which lies as `from`; `dims` are the whole value's.
// REQUIRES: move_cost is below kNever; `to` is not a sum.
ValueId move(Program& p, ValueId x, const Dims& dims, const Cut& from, const Cut& to,
             const Member& me);

// What `to` holds of a value that is cut in parts, of x, which is what `from` holds.
ValueId share(Program& p, ValueId x, const Cut& cut, const Member& from, const Member& to);

// What the rank with coordinate `root` has, on all.
ValueId broadcast(Program& p, ValueId x, int root, const Member& me);

// x summed, or its largest taken ("max"), over the ranks.
ValueId all_reduce(Program& p, ValueId x, const Member& me, const char* fn = "sum");

}  // namespace orrery
