// SPDX-License-Identifier: Apache-2.0
//
// How everything that a rank reads and makes in a step lies over the ranks (`orrery plan
// --layouts`).
#pragma once

#include "edit/blueprint.h"
#include "plan/json.h"

namespace orrery {

// The object with the "axes" of the mesh, the "states" (name, type, layout) and the "ops" (phase,
// kind, type, layout, region, and for exchanges the axis) of the rank, in their order. Types are
// those of the whole values. Views and single numbers are left out.
Json layouts_json(const PlanSource& source, const Blueprint& b, int rank);

}  // namespace orrery
