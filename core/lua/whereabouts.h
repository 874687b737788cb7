// SPDX-License-Identifier: Apache-2.0
//
// The line that the script is at, for ranks that wait for this one: a signal sets a hook that
// looks, as Lua's own interpreter does to interrupt. Nothing is looked at unless somebody asks.
#pragma once

#include <lua.hpp>

namespace orrery::lua {

class Whereabouts {
 public:
  explicit Whereabouts(lua_State* L);  // REQUIRES: L outlives this; one at a time [main thread]
  ~Whereabouts();
  Whereabouts(const Whereabouts&) = delete;
};

}  // namespace orrery::lua
