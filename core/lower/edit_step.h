// SPDX-License-Identifier: Apache-2.0
//
// The editing calls about a step as a whole: what is differentiated, its results, and what becomes
// of the finished update.
#pragma once

#include <orrery/strategy.h>

namespace orrery::edit {

int32_t trains(orr_program*);
orr_status* cotangent(orr_program*, int32_t value);
orr_status* output(orr_program*, const char* name, int32_t value);
orr_status* complete(orr_program*, const orr_complete_hook*);

}  // namespace orrery::edit
