// SPDX-License-Identifier: Apache-2.0
//
// A plugin whose file reads well, and whose code ends whoever loads it, as that of a damaged file
// may.
#include <orrery/plugin.h>

#include <cstdlib>

namespace {

[[gnu::constructor]] void end() { std::abort(); }

orr_status* entry(const orr_bootstrap*, orr_exports*) { return nullptr; }

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "ends", "0.1.0", "Ends the process that loads it", entry, 1,
           {{"observer", 1, 1}})
