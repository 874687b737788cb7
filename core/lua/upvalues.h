// SPDX-License-Identifier: Apache-2.0
//
// Tracing freezes the numbers and booleans that a function closes over. A snapshot of them, taken
// at the trace, lets a later step notice that the script changed one.
#pragma once

#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

class Upvalues {
 public:
  // Watches a Lua function and, through its upvalues, the script's functions that it calls.
  void watch(lua_State* L, int index);
  // Remembers the values of now.
  void take(lua_State* L);
  bool taken() const { return taken_; }
  // Throws Error naming the first upvalue that changed since.
  void check(lua_State* L) const;

 private:
  struct Entry {
    size_t function;
    int upvalue;
    bool boolean;
    double value;
  };
  bool known(lua_State* L, int index) const;

  std::vector<Function> functions_;
  std::vector<Entry> entries_;
  bool taken_ = false;
};

}  // namespace orrery::lua
