// SPDX-License-Identifier: Apache-2.0
//
// Values that have the extent of the batch without being made of it, such as random numbers of dims
// {B, 1} or a parameter that is repeated B times: where an op meets them with samples, each sample
// gets its own row. Only values whose rows nothing but their place tells apart are taken so.
#pragma once

#include <vector>

#include "program/op.h"
#include "program/program.h"

namespace orrery {

// Lets the op, whose outputs will have these types, read each sample's own rows of such inputs,
// where it computes something for each sample. Other inputs stay as they are.
void take_own_rows(Program& p, Op& op, const std::vector<Type>& out);

// Of a value [batch, ...] that is one for all samples, each sample's own row. REQUIRES: a batch.
ValueId own_rows(Program& p, ValueId x);

}  // namespace orrery
