// SPDX-License-Identifier: Apache-2.0
//
// Parts of one program in another.
#pragma once

#include <map>
#include <vector>

#include "program/program.h"

namespace orrery {

// Appends to `to`, a program without a batch, the ops of `from` that `wanted` are made of, in their
// order; returns what `wanted` are there. Values of `given`, by their number in `from`, are values
// of `to` instead; other states and scalars are the same ones in both. A sum over the batch is what
// is given for it. Throws Error where a part needs the batch itself.
std::vector<ValueId> copy_part(const Program& from, const std::map<ValueId, ValueId>& given,
                               const std::vector<ValueId>& wanted, Program& to);

}  // namespace orrery
