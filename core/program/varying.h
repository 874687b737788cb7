// SPDX-License-Identifier: Apache-2.0
//
// Varying values. On a mesh axis a value is the same for all coordinates, or it varies: each
// coordinate has its own value of the full shape, such as a local gradient, or a parameter of a
// replica that trains apart. What is computed from a varying value varies, until a collective over
// the axis makes one value of it. (JAX's shard_map has the same notion: "varying manual axes".)
#pragma once

#include "program/program.h"

namespace orrery {

// Sets the axes on which an op's outputs vary. Two sorts of values differ between ranks and still
// get no axis here: those of a step whose ranks train apart, and results of an op that has the
// attribute int "unmarked" = 1.
void relate_to_axes(Program& p, const Op& op);

// Throws Error if v varies on an axis that is not in `axes`. `use` says what v is used for, such as
// "the loss" or "'w', which is the same on all ranks". The error names the current site's line and
// the line where the value begins to vary.
void check_varies_within(const Program& p, ValueId v, const std::string& axes,
                         const std::string& use);

}  // namespace orrery
