// SPDX-License-Identifier: Apache-2.0
//
// Activations that backward computes again instead of keeping them. EXACT: a clone has the op's
// attributes, random numbers and rounding, so it gives the same bits.
#pragma once

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// Gives backward its own copies of what `spread` wants recomputed, each made right before its first
// use there. Kept are values without a batch dim, and values that forward reads outside their
// region or that are results. Ids of values stay; ops move, and their twins with them.
void recompute(Program& p, const Spread& spread);

}  // namespace orrery
