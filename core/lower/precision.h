// SPDX-License-Identifier: Apache-2.0
//
// Ops that compute in another element type than the one they were traced with.
#pragma once

#include <map>

#include "program/program.h"

namespace orrery {

// Before differentiation: makes the ops that make the given values work in the given real dtype.
// What they read is cast, parameters once for each op that reads them, so that gradients stay apart
// by use; everything else reads what it was traced with. Casts that the script wrote stay casts.
// Ids of values stay. Throws Error with the op's Lua line if it cannot work in that dtype.
void set_precision(Program& p, const std::map<ValueId, int32_t>& dtypes);

}  // namespace orrery
