// SPDX-License-Identifier: Apache-2.0
//
// Tensor methods that make fewer elements: sums, means, extremes, the largest ones.
#include "lua/api.h"
#include "lua/objects.h"
#include "program/build.h"

namespace orrery::lua {
namespace {

// Argument 2: nil (all dims), a dim or a list of dims.
Dims dims_at(lua_State* L, ValueId x) {
  if (lua_isnil(L, 2)) return {};
  Dims dims = to_integers(L, 2, "dim");
  for (int64_t& dim : dims) dim = to_dim(dim, program_here(L).type(x).dims.size());
  return dims;
}

int reduce(lua_State* L, const char* fn) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  push_tensor(L, build::reduce(program, fn, x, dims_at(L, x), option_bool(L, 3, "keep")));
  return 1;
}

int sum(lua_State* L) { return reduce(L, "sum"); }
int sumsq(lua_State* L) { return reduce(L, "sumsq"); }
int max(lua_State* L) { return reduce(L, "max"); }
int min(lua_State* L) { return reduce(L, "min"); }

int mean(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  push_tensor(L, build::mean(program, x, dims_at(L, x), option_bool(L, 3, "keep")));
  return 1;
}

int argmax(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::argmax(program, value_at(L, 1)));
  return 1;
}

int topk(lua_State* L) {
  Program& program = program_here(L);
  const std::vector<ValueId> out = build::topk(program, value_at(L, 1), lua_tointeger(L, 2));
  for (ValueId value : out) push_tensor(L, value);
  return static_cast<int>(out.size());
}

Api row(const char* name, const char* doc, int (*body)(lua_State*)) {
  return {"Tensor",
          name,
          "orrery.Tensor",
          doc,
          body,
          {{"self", "tensor"}, {"dims", "integers", "nil"}, {"options", "options", "nil"}},
          {{"keep", "boolean", "false", "keep the reduced dims with size 1"}}};
}

}  // namespace

std::vector<Api> reduce_api() {
  return {
      row("sum", "Sum over dims (all, if left out).", sum),
      row("sumsq", "Sum of squares over dims.", sumsq),
      row("mean", "Mean over dims; over the batch, of the samples that count.", mean),
      row("max", "Largest element over dims.", max),
      row("min", "Smallest element over dims.", min),
      {"Tensor",
       "argmax",
       "orrery.Tensor",
       "0-based position of the largest of the last dim.",
       argmax,
       {{"self", "tensor"}},
       {}},
      {"Tensor",
       "topk",
       "orrery.Tensor, orrery.Tensor",
       "The k largest of the last dim, descending, and their 0-based positions.",
       topk,
       {{"self", "tensor"}, {"k", "integer"}},
       {}},
  };
}

}  // namespace orrery::lua
