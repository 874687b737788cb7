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

// A word under way, and what it was said of.
struct Handle {
  static constexpr const char* kClass = "Handle";
  PostedWord posted;
  Word word;
  Function argument;
};

// Argument 1, if this rank is in it; else throws.
const World& world_at(lua_State* L);
// A call of `word` to the world that is argument 1, from the user's line.
WordCall call_at(lua_State* L, Word word);

// One list per file.
std::vector<Api> word_api();
std::vector<Api> object_api();

}  // namespace orrery::lua
