// SPDX-License-Identifier: Apache-2.0
//
// Gradients written in Lua: a value whose cotangent a Lua function answers for.
#include "lua/api.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

std::vector<ValueId> call_backward(const Function& backward, Program& program, ValueId dy,
                                   ValueId y, const std::vector<ValueId>& xs) {
  lua_State* L = backward.state();
  const int top = lua_gettop(L);
  Trace trace(L, program);
  luaL_checkstack(L, static_cast<int>(xs.size()) + 8, "gradient");
  backward.push();
  push_tensor(L, dy);
  push_tensor(L, y);
  for (ValueId x : xs) push_tensor(L, x);
  protected_call(L, static_cast<int>(xs.size()) + 2, LUA_MULTRET);
  std::vector<ValueId> gradients;
  for (int i = top + 1; i <= lua_gettop(L); ++i)
    gradients.push_back(lua_isnil(L, i) ? kNone : value_at(L, i));
  lua_settop(L, top);
  return gradients;
}

int with_gradient(lua_State* L) {
  Program& program = program_here(L);
  const ValueId y = value_at(L, 1);
  std::vector<ValueId> xs;
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) != LUA_TNIL; ++i) {
    xs.push_back(value_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  Function backward(L, 3);
  Program* p = &program;
  push_tensor(L, program.with_gradient(
                     y, xs, [=](ValueId dy) { return call_backward(backward, *p, dy, y, xs); }));
  return 1;
}

}  // namespace

std::vector<Api> gradient_api() {
  return {{"engine",
           "with_gradient",
           "orrery.Tensor",
           "`y`, whose cotangent goes through `backward(dy, y, x...)` to the tensors `xs`.",
           with_gradient,
           {{"y", "tensor"}, {"xs", "table"}, {"backward", "function"}},
           {}}};
}

}  // namespace orrery::lua
