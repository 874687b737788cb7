// SPDX-License-Identifier: Apache-2.0
//
// Running a user's script: what the command line calls.
#pragma once

#include <string>
#include <vector>

namespace orrery {

// Runs the script with its `key=value` arguments in this process, as the rank that it is. Prints an
// error to stderr once. Returns the exit code; a script that ends because its plan was printed ends
// with 0. [main thread]
int run_script(const std::string& path, const std::vector<std::string>& args);

// Writes the LuaLS declarations of the Lua API below `directory`.
void write_lua_stubs(const std::string& directory);

// What a function of scripts/orrery/manual.lua returns: "stubs", "page", or "help" on a name, which
// throws Error with the nearest for an unknown one.
std::string lua_manual(const std::string& function, const std::string& name = "");

// The Lua library's directory: beside the installed program, or the source tree's.
std::string lua_library();

}  // namespace orrery
