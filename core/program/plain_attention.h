// SPDX-License-Identifier: Apache-2.0
//
// What attention of grouped heads and with a window is made of where an op, or a kernel, knows only
// as many heads of keys as of queries, and a bias.
#pragma once

#include <vector>

#include "program/program.h"

namespace orrery {

// [1,1,T,S]: which of so many keys a query sees by its place, of which query 0 has `first` (the
// number of keys less that of queries, where the last query meets the last key): under a causal
// mask none behind it, with a window none that is so many places away, or more. REQUIRES: one of
// both.
ValueId seen_by_place(Program& p, int64_t queries, int64_t keys, bool causal, int64_t window,
                      const Operand& first);
// The bias, of this dtype, where a key is seen, and -inf elsewhere. kNone: there is none.
ValueId seen_bias(Program& p, ValueId seen, ValueId bias, int32_t dtype);

// Dim `dim` consists of groups [G, ...] of equal size: each of them so often, one beside the other.
ValueId repeat_groups(Program& p, ValueId x, size_t dim, int64_t groups, int64_t times);
// Its adjoint: the sum of so many neighbours.
ValueId sum_groups(Program& p, ValueId x, size_t dim, int64_t groups, int64_t times);

// Adds attention or attention_grad to p, without its groups of heads if `heads`, without its window
// if `window`. Returns what stands for its outputs.
std::vector<ValueId> plain_attention(Program& p, Op op, bool heads, bool window);

}  // namespace orrery
