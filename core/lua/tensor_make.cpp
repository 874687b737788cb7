// SPDX-License-Identifier: Apache-2.0
//
// Tensors from nothing: constants, counters, random numbers.
#include "lua/api.h"
#include "lua/objects.h"
#include "program/build.h"

namespace orrery::lua {
namespace {

int iota(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::iota(program, lua_tointeger(L, 1), to_dtype(L, 2)));
  return 1;
}

int filled(lua_State* L, double value, int dims, int dtype) {
  Program& program = program_here(L);
  push_tensor(L, program.constant(value, to_dtype(L, dtype), to_integers(L, dims, "dims")));
  return 1;
}

int zeros(lua_State* L) { return filled(L, 0, 1, 2); }
int ones(lua_State* L) { return filled(L, 1, 1, 2); }
int full(lua_State* L) { return filled(L, lua_tonumber(L, 2), 1, 3); }

int like(lua_State* L, double value) {
  Program& program = program_here(L);
  const Type type = program.type(value_at(L, 1));
  push_tensor(L, program.constant(value, type.dtype, type.dims));
  return 1;
}

int zeros_like(lua_State* L) { return like(L, 0); }
int ones_like(lua_State* L) { return like(L, 1); }

int uniform(lua_State* L) {
  Program& program = program_here(L);
  if (is_tensor(L, 1)) {
    const ValueId x = value_at(L, 1);
    push_tensor(L, program.random_uniform({ORR_F32, program.type(x).dims}, x));
  } else {
    push_tensor(L, program.random_uniform({ORR_F32, to_integers(L, 1, "dims")}));
  }
  return 1;
}

}  // namespace

std::vector<Api> make_api() {
  const char* t = "orrery.Tensor";
  return {
      {"orrery",
       "iota",
       t,
       "0, 1, ... n-1.",
       iota,
       {{"n", "integer"}, {"dtype", "dtype", "'i64'"}},
       {}},
      {"orrery",
       "zeros",
       t,
       "A tensor of zeros.",
       zeros,
       {{"dims", "integers"}, {"dtype", "dtype", "'f32'"}},
       {}},
      {"orrery",
       "ones",
       t,
       "A tensor of ones.",
       ones,
       {{"dims", "integers"}, {"dtype", "dtype", "'f32'"}},
       {}},
      {"orrery",
       "full",
       t,
       "A tensor of one value.",
       full,
       {{"dims", "integers"}, {"value", "number"}, {"dtype", "dtype", "'f32'"}},
       {}},
      {"orrery",
       "zeros_like",
       t,
       "Zeros in the type of another tensor.",
       zeros_like,
       {{"tensor", "tensor"}},
       {}},
      {"orrery",
       "ones_like",
       t,
       "Ones in the type of another tensor.",
       ones_like,
       {{"tensor", "tensor"}},
       {}},
      {"orrery",
       "uniform",
       t,
       "New uniform numbers in [0,1) at every step: of these dims, or shaped like a tensor.",
       uniform,
       {{"dims_or_tensor", "any"}},
       {}},
  };
}

}  // namespace orrery::lua
