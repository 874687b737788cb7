// SPDX-License-Identifier: Apache-2.0
//
// Appends the ops that move a value from one layout over the ranks of an axis to another.
#pragma once

#include "program/program.h"

namespace orrery {

// The cost of a move: elements sent per element of the value. More than kNever: it is impossible.
constexpr double kNever = 1e6;
double move_cost(const Placement& from, const Placement& to, int ranks);

// Moves x, which lies as `from`, to the layout `to`; `dims` are those of the whole value.
// REQUIRES: move_cost is below kNever; `to` is not a sum.
ValueId move(Program& p, ValueId x, const Dims& dims, const Placement& from, const Placement& to,
             const Member& me);

// Takes from x, the part that member `from` holds of a value, the part that member `to` holds.
ValueId share(Program& p, ValueId x, const Placement& cut, const Member& from, const Member& to);

// Sends the x of the rank with coordinate `root` to all ranks.
ValueId broadcast(Program& p, ValueId x, int root, const Member& me);

// The sum of x over the ranks, or its maximum ("max").
ValueId all_reduce(Program& p, ValueId x, const Member& me, const char* fn = "sum");

}  // namespace orrery
