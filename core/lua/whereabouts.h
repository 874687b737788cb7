// SPDX-License-Identifier: Apache-2.0
//
// Finds the line that the script is executing, to tell ranks that wait for this one. A signal
// handler sets a Lua hook, which notes the line, as Lua's own interpreter does to interrupt a
// script. It costs nothing as long as no rank asks.
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
