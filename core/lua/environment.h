// SPDX-License-Identifier: Apache-2.0
//
// The environment in which chunks of the script run: strict globals, iteration in sorted order,
// seeded random numbers, and a `require` that finds the same modules on every rank
// (scripts/orrery/globals.lua).
#pragma once

#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

// Opens the standard libraries, the classes and `require` in a Lua state. Chunks can only be text.
// Modules are looked for in the directory of `script` first; "": in the working directory.
void open_environment(lua_State* L, const std::string& script);

// Compiles a chunk whose globals are strict; leaves the function on the stack. Throws Error.
void load_chunk(lua_State* L, const std::string& text, const std::string& chunk_name);

std::string read_script(const std::string& path);

// The state of math.random, which each number that is drawn changes. "": the script has put another
// function in its place.
std::string random_state(lua_State* L);
// Seeds math.random with the job's seed.
void seed_random(lua_State* L);

// The script that runs, and what stands behind it, for scripts/orrery/args.lua. path "": none runs.
struct GivenScript {
  std::string path;
  std::vector<std::string> arguments;
};
GivenScript& given_script();

// The code of errors for which the process ends with exit code 2 (usage).
constexpr int kUsageError = 1002;

}  // namespace orrery::lua
