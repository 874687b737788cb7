// SPDX-License-Identifier: Apache-2.0
//
// The editing calls that say how values lie over the ranks of an axis.
#pragma once

#include <orrery/strategy.h>

#include "lower/mesh.h"

namespace orrery::edit {

// Throws Error if there is none.
const Axis& find_axis(orr_program*, const char* name);

orr_status* place(orr_program*, int32_t value, const char* axis, int32_t dim);
orr_status* scatter(orr_program*, const char* axis, int32_t dim);
orr_status* chunk(orr_program*, const char* axis, int32_t chunks);

}  // namespace orrery::edit
