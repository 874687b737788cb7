// SPDX-License-Identifier: Apache-2.0
//
// The classes behind `orrery.world`.
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

// A collective that has been posted.
struct Handle {
  static constexpr const char* kClass = "Handle";
  PostedCollective posted;
};

// The group's number. Throws Error if this rank is not in it.
int group_of(const World& world);
// A call of this collective in the world or group, at the user's line.
CollectiveCall call_of(lua_State* L, const World& world, Collective kind);

}  // namespace orrery::lua
