// SPDX-License-Identifier: Apache-2.0
//
// Finds conditions on traced tensors, which have no numbers yet. Lua decides such conditions
// without calling a metamethod: `x == 0` is always false, and `if x:gt(0)` is always true. [main
// thread]
#pragma once

#include <lua.hpp>

namespace orrery::lua {

// During its life, a line of the script that compares a tensor with a number by == or ~= is an
// error. It recognises operands that are names and their fields; refuse_unused_conditions finds
// others.
class ConditionWatch {
 public:
  explicit ConditionWatch(lua_State* L);
  ~ConditionWatch();
  ConditionWatch(const ConditionWatch&) = delete;

 private:
  lua_State* L;
  lua_Hook outer_;
  int outer_mask_, outer_count_;
};

}  // namespace orrery::lua
