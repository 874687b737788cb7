// SPDX-License-Identifier: Apache-2.0
//
// Edits of ops that are there: what they read, what they compute in, their order. Ids of values
// stay. Between edits producers may stand behind their readers, and types may not fit yet.
#pragma once

#include <functional>
#include <vector>

#include "program/program.h"

namespace orrery {

// The ops that these values are made of, down to values for which `stops` holds.
std::vector<bool> ops_behind(const Program& p, std::vector<ValueId> wanted,
                             const std::function<bool(ValueId)>& stops = nullptr);

// Lets what reads `value` read `by` instead, of the same type and relation to the batch. `uses` has
// a bit for each Phase of the reading ops, ORR_USES_RESULTS for updates and outputs (strategy.h).
// What `by` is computed from stays. Throws Error that names both values.
void replace_uses(Program& p, ValueId value, ValueId by, uint32_t uses);

// Lets the op that makes `of` read `by` instead of `value`, of the same shape.
void replace_input(Program& p, ValueId of, ValueId value, ValueId by);

// Appends a copy of the op that makes `value` on other inputs of the same types, and returns its
// outputs, which have the types and relations of the originals.
std::vector<ValueId> copy_op(Program& p, ValueId value, const std::vector<ValueId>& in,
                             Phase phase);

// Appends an op of one result as it is, at the current site and phase: the rules about the batch
// are those of the logical program, and do not hold for a rank's.
ValueId append_op(Program& p, Op op, const Type& type);
ValueId append_op(Program& p, const char* kind, const Attrs& attrs, const std::vector<ValueId>& in,
                  const Type& type);

// Types the op that makes `value` anew. Where it computed in the value's dtype it computes in
// `compute`; a sum or a last cast is stored in `store`; 0: as before. Throws Error with the op's
// line if it cannot.
void retype_op(Program& p, ValueId value, int32_t compute, int32_t store);

// Puts producers before their readers: an op that something before it reads goes right before the
// first such op, all else stays in order. Throws Error if an op would need its own result.
void order_ops(Program& p);

// Lets casts read what they are given, and throws Error for any other op whose inputs have no
// longer the types it was made for.
void check_types(Program& p);

// The forward op that one belongs to which runs in `phase` beside `value`'s op; kNone: none.
OpId twin_beside(const Program& p, ValueId value, Phase phase);

}  // namespace orrery
