// SPDX-License-Identifier: Apache-2.0
//
// Values that have the extent of the batch without being made of it, such as random numbers of dims
// {B, 1}, a parameter that is repeated B times, and what layers make of these: where an op meets
// them with samples, each sample gets its own row. Only values whose rows nothing but their place
// distinguishes are taken so.
#pragma once

#include <functional>
#include <vector>

#include "program/op.h"
#include "program/program.h"

namespace orrery {

// Lets the op, whose outputs will have these types, read each sample's own rows of such inputs,
// where it computes something for each sample. Other inputs stay as they are.
void take_own_rows(Program& p, Op& op, const std::vector<Type>& out);

// What stands for x in a derivative of y by it: x, or if y is made of the rows that samples have of
// x, these rows. Throws Error with the current site's prefix if y is made of both.
ValueId met_in(Program& p, ValueId x, const std::function<bool(ValueId)>& is_in_y);

// Of a value [batch, ...] that is one for all samples, each sample's own row. REQUIRES: a batch.
ValueId own_rows(Program& p, ValueId x);

}  // namespace orrery
