// SPDX-License-Identifier: Apache-2.0
//
// Who a plugin file is, read from its ELF section ".orrery_plugin" without running any of its code.
#pragma once

#include <orrery/plugin.h>

#include <filesystem>

namespace orrery {

// The descriptor in the file; its `entry` is null. Strings are terminated whatever the file says.
// Throws Error(ORR_UNAVAILABLE): one sentence with what is wrong and what to do, without the path.
orr_plugin read_descriptor(const std::filesystem::path& file);

}  // namespace orrery
