// SPDX-License-Identifier: Apache-2.0
//
// Opens plugins. Shared objects are loaded here only, and never unloaded. [main thread]
#pragma once

#include <orrery/plugin.h>

#include <filesystem>

namespace orrery {

// Throws Error(ORR_UNAVAILABLE) if the file, its directory or one above could have been written or
// replaced by somebody other than root or this user. One sentence, without the path. REQUIRES: an
// absolute path.
void check_trusted(const std::filesystem::path& file);

// Loads the file, finds the descriptor that `expected` was read from, and calls its entry. The
// exports live for the process. REQUIRES: the file passed read_descriptor and check_trusted.
// Throws Error naming path, stage, reason and fix.
orr_exports open_plugin(const std::filesystem::path& file, const orr_plugin& expected);
// The same with the caller's own structs, such as an older or a newer host would give.
void open_plugin(const std::filesystem::path& file, const orr_plugin& expected,
                 const orr_bootstrap& boot, orr_exports& out);
// The table that the plugin's `get` returns; NULL if it has none. `plugin` names the plugin in the
// message, should the call end the process.
const void* ask(const orr_exports& exports, const char* id, uint32_t version,
                const std::string& plugin);

}  // namespace orrery
