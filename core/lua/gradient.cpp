// SPDX-License-Identifier: Apache-2.0
//
// Gradients written in Lua: a value whose cotangent a Lua function answers for.
#include "lua/api.h"
#include "lua/objects.h"
#include "program/autodiff.h"

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

// The tensors of the list at `index`.
std::vector<ValueId> values_at(lua_State* L, int index) {
  std::vector<ValueId> found;
  for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; ++i) {
    found.push_back(value_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return found;
}

// backward gets the value with the gradient, so that what it computes from it is differentiated by
// the same rule.
int with_gradient(lua_State* L) {
  Program* p = &program_here(L);
  const ValueId y = value_at(L, 1);
  const std::vector<ValueId> xs = values_at(L, 2);
  Function backward(L, 3);
  auto made = std::make_shared<ValueId>(y);
  *made = p->with_gradient(y, xs,
                           [=](ValueId dy) { return call_backward(backward, *p, dy, *made, xs); });
  push_tensor(L, *made);
  return 1;
}

// What multiplies the derivatives: 1 for a scalar, else option grad_output.
ValueId cotangent_of(lua_State* L, Program& p, ValueId y) {
  const Type type = p.type(y);
  lua_getfield(L, 3, "grad_output");
  if (!lua_isnil(L, -1)) {
    const ValueId given = value_at(L, lua_gettop(L));
    if (p.type(given) != type)
      fail(ORR_INVALID, "grad: grad_output is {}, what is differentiated {}: give one of its kind",
           to_string(p.type(given)), to_string(type));
    return given;
  }
  if (!type.dims.empty())
    fail(ORR_INVALID,
         "grad: {} is no scalar: sum it, as in orrery.grad(y:sum(), ...), which for samples gives "
         "each its own derivative, or give the option grad_output",
         to_string(type));
  return p.constant(1, type.dtype);
}

int grad(lua_State* L) {
  Program& p = program_here(L);
  const ValueId y = value_at(L, 1);
  if (!is_real(p.type(y).dtype))
    fail(ORR_INVALID, "grad: {} has no derivative: only real tensors have", to_string(p.type(y)));
  const std::vector<ValueId> values = values_at(L, 2);
  if (values.empty()) fail(ORR_INVALID, "grad: the list of values is empty: {{x}} for one tensor");
  for (size_t i = 0; i < values.size(); ++i)
    if (!is_real(p.type(values[i]).dtype))
      fail(ORR_INVALID, "grad: value {} is {}: only by real tensors is there a derivative", i + 1,
           to_string(p.type(values[i])));
  const Site here = p.site();
  const ValueId cotangent = cotangent_of(L, p, y);
  p.set_site(here);
  std::vector<ValueId> found;
  try {
    found = derivatives(p, y, cotangent, values);
  } catch (const Error& e) {
    const std::string what = e.what();
    if (what.rfind(here.prefix(), 0) == 0) throw;
    throw Error(e.code(), here.prefix() + "grad: " + what);
  }
  lua_createtable(L, static_cast<int>(found.size()), 0);
  for (size_t i = 0; i < found.size(); ++i) {
    push_tensor(L, found[i]);
    lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

}  // namespace

std::vector<Api> gradient_api() {
  return {
      {"engine",
       "with_gradient",
       "orrery.Tensor",
       "`y`, whose cotangent goes through `backward(dy, y, x...)` to the tensors `xs`.",
       with_gradient,
       {{"y", "tensor"}, {"xs", "table"}, {"backward", "function"}},
       {}},
      {"orrery",
       "grad",
       "orrery.Tensor[]",
       "The derivatives of the scalar `y` by each tensor of the list `values`: parameters, batch "
       "fields or what was computed on the way to `y`. They are tensors of this function and can "
       "be differentiated again. Of the samples' sum, `y:sum()`, each sample has its own; of a "
       "mean over the batch those by parameters are means over it as well.",
       grad,
       {{"y", "tensor"}, {"values", "table"}, {"options", "options", "nil"}},
       {{"grad_output", "tensor", "nil", "for a `y` with dims: what multiplies its derivatives"}}}};
}

}  // namespace orrery::lua
