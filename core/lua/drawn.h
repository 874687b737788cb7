// SPDX-License-Identifier: Apache-2.0
//
// Random numbers for functions of the script that must give the same on all ranks, and again when a
// run goes on.
#pragma once

#include <lua.hpp>

#include <cstdint>

namespace orrery::lua {

// Pushes a function that is called as math.random is, and whose numbers are a function of seed,
// purpose and ordinal.
void push_random(lua_State* L, uint64_t seed, uint32_t purpose, int64_t ordinal);

}  // namespace orrery::lua
