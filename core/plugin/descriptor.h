// SPDX-License-Identifier: Apache-2.0
//
// Checks a plugin's descriptor, which comes from a file that anybody can have written.
#pragma once

#include <orrery/plugin.h>

namespace orrery {

// Throws Error(ORR_UNAVAILABLE): one sentence with what is wrong and what to do, without the path.
// REQUIRES: the char arrays of `plugin` end with a zero.
void check_descriptor(const orr_plugin& plugin);

}  // namespace orrery
