// SPDX-License-Identifier: Apache-2.0
//
// Attention on a part of the heads of queries, where those of keys and values do not divide over
// the ranks: every rank has them all, and picks those that its queries read. What these add to the
// gradients of keys and values is a summand.
#pragma once

#include "program/on_parts.h"

namespace orrery {

// Carries out attention or its gradient. REQUIRES: the heads of queries divide over the chunks of
// the axis; `way` says how the inputs and outputs lie, those of keys and values left aside.
void on_picked_groups(OnParts& s, const Op& op, const Way& way);

// Makes the attributes of the op those of a part of the heads of queries, which read so many heads
// of keys.
void fit_heads(Op& op, const Member& part, int64_t kv_heads);

}  // namespace orrery
