// SPDX-License-Identifier: Apache-2.0
//
// The world that script chunks see: strict globals, sorted iteration, seeded random numbers, and a
// `require` that finds the same modules on every rank (scripts/orrery/globals.lua).
#pragma once

#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

// A state with the standard libraries, the classes and `require`; chunks are text only.
// `script_directory` comes first in the search for modules.
void open_environment(lua_State* L, const std::string& script_directory);

// Compiles a chunk whose globals are strict; leaves the function on the stack. Throws Error.
void load_chunk(lua_State* L, const std::string& text, const std::string& chunk_name);

std::string read_script(const std::string& path);

// Seeds math.random with the job's seed.
void seed_random(lua_State* L);

// The script's key=value arguments, for orrery.args; what takes them has read them.
void set_script_arguments(const std::vector<std::string>& words);
std::vector<std::string> take_script_arguments();
// Throws if there are arguments that the script has not asked for.
void refuse_unread_arguments();

// The error that the command line should end with 2 (usage) for.
constexpr int kUsageError = 1002;

}  // namespace orrery::lua
