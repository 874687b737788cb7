// SPDX-License-Identifier: Apache-2.0
//
// Several ops that a kernel plugin computes as one (orrery/kernel.h, claim).
#pragma once

#include <functional>
#include <vector>

#include "program/program.h"

namespace orrery {

struct OpDef;

// What an op of the kind "group" stands for. Values are numbered from 0 in it; `in` and `out` are
// those that are the inputs and outputs of that op.
struct OpGroup {
  std::vector<Op> ops;  // in their order
  std::vector<Type> types;
  std::vector<ValueId> in, out;
};

// The op that stands for these of p, in its last one's place. What they read and do not make goes
// in; what they make comes out, if `is_read` says that something else reads it.
Op as_one(const Program& p, const std::vector<OpId>& ops,
          const std::function<bool(ValueId)>& is_read);

// The kind of an op for people; of a group the names of its ops, "rmsnorm + matmul" or "9 sumsq".
std::string shown_kind(const Op& op);

// The row of the kind, which only lowering adds.
extern const OpDef group_op;

}  // namespace orrery
