// SPDX-License-Identifier: Apache-2.0
//
// Collectives as methods of tensors: over a mesh axis, in strategies, optimizers and models.
#include "lua/api.h"
#include "lua/objects.h"
#include "program/build.h"
#include "program/build_comm.h"

namespace orrery::lua {
namespace {

// A dim of the tensor at 1, 0-based; scalars have none.
int64_t dim_of(lua_State* L, ValueId x, const char* option) {
  const size_t rank = program_here(L).type(x).dims.size();
  return rank ? to_dim(option_int(L, 3, option), rank) : 0;
}

std::string axis_at(lua_State* L) { return to_text(L, 2, "axis"); }

int all_reduce(lua_State* L) {
  Program& p = program_here(L);
  const std::string fn = to_text(L, 3, "op");
  if (fn != "sum" && fn != "mean" && fn != "min" && fn != "max")
    fail(ORR_INVALID, "all_reduce: there is no op '{}'; there are sum, mean, min, max", fn);
  push_tensor(L, build::all_reduce(p, value_at(L, 1), axis_at(L), fn));
  return 1;
}

int all_gather(lua_State* L) {
  Program& p = program_here(L);
  const ValueId x = value_at(L, 1);
  push_tensor(L, build::all_gather(p, x, axis_at(L), dim_of(L, x, "dim")));
  return 1;
}

int reduce_scatter(lua_State* L) {
  Program& p = program_here(L);
  const ValueId x = value_at(L, 1);
  push_tensor(L, build::reduce_scatter(p, x, axis_at(L), dim_of(L, x, "dim")));
  return 1;
}

int all_to_all(lua_State* L) {
  Program& p = program_here(L);
  const ValueId x = value_at(L, 1);
  push_tensor(L,
              build::all_to_all(p, x, axis_at(L), dim_of(L, x, "split"), dim_of(L, x, "concat")));
  return 1;
}

int ppermute(lua_State* L) {
  Program& p = program_here(L);
  const ValueId x = value_at(L, 1);
  lua_getfield(L, 3, "to");
  const ValueId y = lua_isnil(L, -1)
                        ? build::permute(p, x, axis_at(L), option_int(L, 3, "hop"))
                        : build::permute(p, x, axis_at(L), Dims(to_integers(L, -1, "to")));
  push_tensor(L, y);
  return 1;
}

int pbroadcast(lua_State* L) {
  Program& p = program_here(L);
  push_tensor(L, build::broadcast(p, value_at(L, 1), axis_at(L), lua_tointeger(L, 3)));
  return 1;
}

int vary(lua_State* L) {
  Program& p = program_here(L);
  push_tensor(L, build::vary(p, value_at(L, 1), axis_at(L)));
  return 1;
}

int axis_size(lua_State* L) {
  lua_pushinteger(L, program_here(L).axis_size(to_text(L, 1, "axis")));
  return 1;
}

int coordinate(lua_State* L) {
  Program& p = program_here(L);
  push_tensor(L, build::coordinate(p, to_text(L, 1, "axis")));
  return 1;
}

int sample_index(lua_State* L) {
  push_tensor(L, build::sample_index(program_here(L)));
  return 1;
}

}  // namespace

std::vector<Api> comm_api() {
  const Arg self = {"self", "tensor"}, axis = {"axis", "string"},
            options = {"options", "options", "nil"};
  const char* tensor = "orrery.Tensor";
  return {
      {"Tensor",
       "all_reduce",
       tensor,
       "The sum, mean, min or max over the ranks of a mesh axis, on all of them. The tensor "
       "varies: "
       "each rank has one of its own.",
       all_reduce,
       {self, axis, {"op", "string", "'sum'"}},
       {}},
      {"Tensor",
       "all_gather",
       tensor,
       "The ranks' tensors one after another along a dim, on all ranks of the axis. Over "
       "\"batch\": "
       "the rows of all samples, on whatever ranks and in whatever microbatches they are, as one "
       "tensor that every sample may read, with its gradient.",
       all_gather,
       {self, axis, options},
       {{"dim", "integer", "1", "along which they are joined; scalars make a list"}}},
      {"Tensor",
       "reduce_scatter",
       tensor,
       "Of the sum over the ranks of an axis this rank's share of a dim.",
       reduce_scatter,
       {self, axis, options},
       {{"dim", "integer", "1", "that is dealt to the ranks"}}},
      {"Tensor",
       "all_to_all",
       tensor,
       "Deals `split` to the ranks of an axis and joins what comes from them along `concat`.",
       all_to_all,
       {self, axis, options},
       {{"split", "integer", "1", "the dim that is dealt"},
        {"concat", "integer", "1", "the dim that is joined"}}},
      {"Tensor",
       "ppermute",
       tensor,
       "What another rank of the axis has: each sends its tensor on.",
       ppermute,
       {self, axis, options},
       {{"hop", "integer", "1", "to the rank so many further, round in a ring"},
        {"to", "integers", "nil", "instead: the coordinate, from 0, that each sends to"}}},
      {"Tensor",
       "pbroadcast",
       tensor,
       "The tensor of one rank of the axis, on all of them.",
       pbroadcast,
       {self, axis, {"root", "integer", "0"}},
       {}},
      {"Tensor",
       "vary",
       tensor,
       "The same numbers as a tensor of each rank's own on the axis.",
       vary,
       {self, axis},
       {}},
      {"orrery", "axis_size", "integer", "How many ranks a mesh axis has.", axis_size, {axis}, {}},
      {"orrery",
       "coordinate",
       tensor,
       "This rank's number on a mesh axis, from 0: i64, differs by rank.",
       coordinate,
       {axis},
       {}},
      {"orrery",
       "sample_index",
       tensor,
       "Each sample's number in the batch, from 0: i64, one for each sample. The row of "
       "x:all_gather(\"batch\") that is its own, as a label.",
       sample_index,
       {},
       {}},
  };
}

}  // namespace orrery::lua
