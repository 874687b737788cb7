// SPDX-License-Identifier: Apache-2.0
//
// What a descriptor may say. It comes from a file that anybody can have written.
#pragma once

#include <orrery/plugin.h>

namespace orrery {

// Throws Error(ORR_UNAVAILABLE): one sentence with what is wrong and what to do, without the path.
// REQUIRES: its char arrays are terminated.
void check_descriptor(const orr_plugin& plugin);

}  // namespace orrery
