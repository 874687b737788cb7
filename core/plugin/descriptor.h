// SPDX-License-Identifier: Apache-2.0
//
// Checks a plugin's descriptor, which comes from a file that anybody can have written.
#pragma once

#include <orrery/plugin.h>

namespace orrery {

// The bit by which this program finds plugins with the interface boot/1 (orrery/boot.h), for which
// descriptors have no kind. It is set when a descriptor is read.
constexpr uint32_t kind_boot = 1u << 31;

// Sets or clears that bit by the list of interfaces. REQUIRES: as below.
void set_kind_boot(orr_plugin& plugin);

// Throws Error(ORR_UNAVAILABLE): one sentence with what is wrong and what to do, without the path.
// REQUIRES: the char arrays of `plugin` end with a zero.
void check_descriptor(const orr_plugin& plugin);

}  // namespace orrery
