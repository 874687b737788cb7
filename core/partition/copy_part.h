// SPDX-License-Identifier: Apache-2.0
//
// Copies part of one program into another.
#pragma once

#include <map>
#include <vector>

#include "program/program.h"

namespace orrery {

// Appends to `to`, a program without a batch, the ops of `from` from which the values `wanted` are
// computed, in their order. Returns the values of `to` that stand for `wanted`. `given` maps values
// of `from` to the values of `to` that stand for them; every sum over the batch that is needed must
// be among them. Other states and scalars are the same in both programs. Throws Error where a part
// needs the batch itself.
std::vector<ValueId> copy_part(const Program& from, const std::map<ValueId, ValueId>& given,
                               const std::vector<ValueId>& wanted, Program& to);

}  // namespace orrery
