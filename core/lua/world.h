// SPDX-License-Identifier: Apache-2.0
//
// What `orrery.world` is made of.
#pragma once

#include <memory>
#include <vector>

#include "comm/collectives.h"
#include "lua/api.h"
#include "lua/layer.h"

namespace orrery::lua {

// The world, or a group of its ranks.
struct World {
  static constexpr const char* kClass = "World";
  int group = 0;           // of WorldComm
  std::vector<int> ranks;  // of a group; empty: all
};

// A collective under way, and what it was said of.
struct Handle {
  static constexpr const char* kClass = "Handle";
  PostedCollective posted;
  Collective kind;
  Function argument;
};

// Argument 1, if this rank is in it; else throws.
const World& world_at(lua_State* L);
// A call of `collective` to the world that is argument 1, from the user's line.
CollectiveCall call_at(lua_State* L, Collective kind);

// One list per file.
std::vector<Api> collective_api();
std::vector<Api> object_api();

}  // namespace orrery::lua
