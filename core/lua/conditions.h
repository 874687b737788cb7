// SPDX-License-Identifier: Apache-2.0
//
// Conditions on tensors that Lua decides without asking anybody: `x == 0` is always false and
// `if x:gt(0)` always holds, as a tensor that is traced has no numbers. [main thread]
#pragma once

#include <lua.hpp>

namespace orrery::lua {

// While it lives, a script's line that compares a tensor with a number by == or ~= is an error.
// Operands are names and their fields; others are left to refuse_unused_conditions.
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
