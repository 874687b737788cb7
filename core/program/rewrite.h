// SPDX-License-Identifier: Apache-2.0
//
// Edits ops of a program: what they read, the dtype in which they compute, their order. Ids of
// values do not change. Between edits, producers may come after their readers, and types need not
// fit.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "program/program.h"

namespace orrery {

// By op: whether these values are computed from it. The search does not go past values for which
// `stops` is true.
std::vector<bool> ops_behind(const Program& p, std::vector<ValueId> wanted,
                             const std::function<bool(ValueId)>& stops = nullptr);

// Makes ops that read `value` read `by` instead, which must have the same type and relation to the
// batch. `uses` selects readers: a bit for each Phase, ORR_USES_RESULTS for updates and outputs
// (strategy.h). Ops from which `by` is computed are not changed. Throws Error that names both
// values.
void replace_uses(Program& p, ValueId value, ValueId by, uint32_t uses);

// Makes the op that makes `of` read `by`, of the same shape, instead of `value`.
void replace_input(Program& p, ValueId of, ValueId value, ValueId by);

// Appends a copy of the op that makes `value` on other inputs of the same types, and returns its
// outputs, which have the types and relations of the originals.
std::vector<ValueId> copy_op(Program& p, ValueId value, const std::vector<ValueId>& in,
                             Phase phase);

// Appends an op of one result, at the current site and phase, without setting its relation to the
// batch: the rules for that are those of logical programs, not of a rank's.
ValueId append_op(Program& p, Op op, const Type& type);
ValueId append_op(Program& p, const char* kind, const Attrs& attrs, const std::vector<ValueId>& in,
                  const Type& type);

// Changes the dtypes of the op that makes `value`: where it computed in the value's dtype, it
// computes in `compute`; a sum or a last cast gets the dtype `store`; 0: as before. Throws Error
// with the op's line if that is not possible.
void retype_op(Program& p, ValueId value, int32_t compute, int32_t store);

// By op: the ops that stand right before it, whatever reads their results.
using StandBefore = std::map<OpId, std::vector<OpId>>;

// Puts producers before their readers: an op whose result an earlier op reads is moved right before
// the first such op; the others stay in order. Throws Error if an op would need its own result.
void order_ops(Program& p, const StandBefore& before = {});

// Adapts casts to the dtypes of their inputs. Throws Error for any other op whose inputs do not
// have the types any more that it was made for.
void check_types(Program& p);

// The twin (Op::twin) of a new op that runs in `phase` beside the op that makes `value`; kNone:
// none.
OpId twin_beside(const Program& p, ValueId value, Phase phase);

}  // namespace orrery
