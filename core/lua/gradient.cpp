// SPDX-License-Identifier: Apache-2.0
//
// Gradients that a Lua function defines for a value.
#include "lua/call.h"
#include "program/autodiff.h"
#include "program/user_gradient.h"

namespace orrery::lua {
namespace {

std::vector<ValueId> call_backward(const Function& backward, Program& program, ValueId dy,
                                   ValueId y, const std::vector<ValueId>& xs) {
  const auto give_all = [&](lua_State* L) { give(L, dy), give(L, y), give(L, xs); };
  return call_traced(backward, program, LUA_MULTRET, give_all, [](lua_State* L, int first) {
    std::vector<ValueId> gradients;
    for (int i = first; i <= lua_gettop(L); ++i)
      gradients.push_back(lua_isnil(L, i) ? kNone : value_at(L, i));
    return gradients;
  });
}

ValueId with_gradient(Program& program, ValueId y, const std::vector<ValueId>& xs,
                      const Function& backward) {
  return orrery::with_gradient(
      program, y, xs,
      [=, p = &program](ValueId dy, ValueId made, const std::vector<ValueId>& read) {
        return call_backward(backward, *p, dy, made, read);
      });
}

// The cotangent with which the derivatives are multiplied: 1 for a scalar, else the option
// grad_output.
ValueId cotangent_of(Program& p, ValueId y, const Table& options) {
  const Type type = p.type(y);
  if (options.has("grad_output")) {
    const ValueId given = options.with("grad_output", value_at);
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

std::vector<ValueId> derivatives_of(Program& p, ValueId y, const std::vector<ValueId>& values,
                                    const Table& options) {
  const Site here = p.site();
  const ValueId cotangent = cotangent_of(p, y, options);
  p.set_site(here);
  try {
    return derivatives(p, y, cotangent, values);
  } catch (const Error& e) {
    const std::string what = e.what();
    if (what.rfind(here.prefix(), 0) == 0) throw;
    throw Error(e.code(), here.prefix() + "grad: " + what);
  }
}

Pushed grad(lua_State* L, Program& p, ValueId y, Index list, const Table& options) {
  if (!is_real(p.type(y).dtype))
    fail(ORR_INVALID, "grad: {} has no derivative: only real tensors have", to_string(p.type(y)));
  const std::vector<ValueId> values = list_at(L, list, value_at);
  if (values.empty()) fail(ORR_INVALID, "grad: the list of values is empty: {{x}} for one tensor");
  for (size_t i = 0; i < values.size(); ++i)
    if (!is_real(p.type(values[i]).dtype))
      fail(ORR_INVALID, "grad: value {} is {}: only by real tensors is there a derivative", i + 1,
           to_string(p.type(values[i])));
  push_list(L, derivatives_of(p, y, values, options), push_tensor);
  return {1};
}

}  // namespace

std::vector<Api> gradient_api() {
  return {
      {"engine.with_gradient(y: Tensor, xs: table, backward: function) -> Tensor; `y`, whose "
       "cotangent goes through `backward(dy, y, x...)` to the tensors `xs`.",
       call<with_gradient>},
      {"orrery.grad(y: Tensor, values: list, options?) -> orrery.Tensor[]; The derivatives of the "
       "scalar `y` by each tensor of the list `values`: parameters, batch fields or what was "
       "computed on the way to `y`. They are tensors of this function and can be differentiated "
       "again. Of the samples' sum, `y:sum()`, each sample has its own; of a mean over the batch "
       "those by parameters are means over it as well. "
       "@option grad_output?: Tensor; for a `y` with dims: what multiplies its derivatives",
       call<grad>},
  };
}

}  // namespace orrery::lua
