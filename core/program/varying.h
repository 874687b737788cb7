// SPDX-License-Identifier: Apache-2.0
//
// Values that differ by rank. On a mesh axis a value is one for all coordinates, or it varies: each
// coordinate has one of its own, of the full shape, and there is no one logical value (a local
// gradient, a replica that trains apart). What is computed of a varying value varies; a collective
// over the axis leads back. (JAX's shard_map types "varying manual axes" so.)
#pragma once

#include "program/program.h"

namespace orrery {

// Gives the outputs of an op the axes on which they vary. What a step computes where ranks train
// apart is each rank's own and not said to vary, nor is what an op with int "apart" = 1 makes.
void relate_to_axes(Program& p, const Op& op);

// Throws Error that names both lines if v varies on an axis on which `use`, such as "the loss" or
// "'w', which is the same on all ranks", does not: the current site's, and where the value begins
// to vary.
void check_varies_within(const Program& p, ValueId v, const std::string& axes,
                         const std::string& use);

}  // namespace orrery
