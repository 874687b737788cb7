// SPDX-License-Identifier: Apache-2.0
//
// Reads a plugin file's descriptor, from its ELF section ".orrery_plugin", and the names that it
// exports, without running any of its code.
#pragma once

#include <orrery/plugin.h>

#include <filesystem>
#include <string>
#include <vector>

namespace orrery {

// The descriptor in the file; its `entry` is null. Strings are terminated whatever the file says.
// Throws Error(ORR_UNAVAILABLE): one sentence with what is wrong and what to do, without the path.
orr_plugin read_descriptor(const std::filesystem::path& file);

// The names that the file's dynamic symbol table defines for others, in its order. Throws as above.
std::vector<std::string> exported_symbols(const std::filesystem::path& file);

}  // namespace orrery
