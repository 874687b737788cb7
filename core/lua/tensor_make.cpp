// SPDX-License-Identifier: Apache-2.0
//
// Functions that make tensors without inputs: constants, counters, random numbers.
#include "lua/call.h"
#include "program/build.h"

namespace orrery::lua {
namespace {

ValueId iota(Program& p, int64_t n, Dtype dtype) { return build::iota(p, n, dtype); }

ValueId full(lua_State* L, Program& p, Index dims, double value, Dtype dtype) {
  return p.constant(value, dtype, to_integers(L, dims, "dims"));
}

ValueId uniform(lua_State* L, Program& p, Index dims_or_tensor) {
  if (!is_tensor(L, dims_or_tensor))
    return p.random_uniform({ORR_F32, to_integers(L, dims_or_tensor, "dims")});
  const ValueId x = value_at(L, dims_or_tensor);
  return p.random_uniform({ORR_F32, p.type(x).dims}, x);
}

}  // namespace

std::vector<Api> make_api() {
  return {
      {"orrery.iota(n: integer, dtype: dtype = 'i64') -> Tensor; 0, 1, ... n-1.", call<iota>},
      {"orrery.full(dims: integers, value: number, dtype: dtype = 'f32') -> Tensor; A tensor of "
       "one "
       "value.",
       call<full>},
      {"orrery.uniform(dims_or_tensor: any) -> Tensor; New uniform numbers in [0,1) at every step: "
       "of these dims, or shaped like a tensor.",
       call<uniform>},
  };
}

}  // namespace orrery::lua
