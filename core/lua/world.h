// SPDX-License-Identifier: Apache-2.0
//
// What `orrery.world` is made of.
#pragma once

#include <memory>
#include <vector>

#include "comm/collectives.h"
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

// The group's number, if this rank is in it; else throws.
int group_of(const World& world);
// A call of `collective` to the world, from the user's line.
CollectiveCall call_of(lua_State* L, const World& world, Collective kind);

}  // namespace orrery::lua
