// SPDX-License-Identifier: Apache-2.0
//
// Tensor methods that move elements. Dims and positions are 1-based and count from the end when
// negative; ids (gather, slice_at) are 0-based.
#include <numeric>

#include "lua/api.h"
#include "lua/objects.h"
#include "program/build.h"

namespace orrery::lua {
namespace {

size_t rank_of(lua_State* L, ValueId x) { return program_here(L).type(x).dims.size(); }

// Integers from argument `first` on: x:reshape(2, 3) or x:reshape{2, 3}.
Dims rest_integers(lua_State* L, int first, const char* what) {
  if (lua_istable(L, first)) return to_integers(L, first, what);
  Dims list;
  for (int i = first; i <= lua_gettop(L); ++i) list.push_back(to_integer(L, i, what));
  return list;
}

int matmul(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::matmul(program, value_at(L, 1), value_at(L, 2),
                               option_bool(L, 3, "transpose_a"), option_bool(L, 3, "transpose_b")));
  return 1;
}

int reshape(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::reshape(program, value_at(L, 1), rest_integers(L, 2, "reshape: dim")));
  return 1;
}

int broadcast(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::broadcast(program, value_at(L, 1), rest_integers(L, 2, "broadcast: dim")));
  return 1;
}

int transpose(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const size_t rank = rank_of(L, x);
  if (rank < 2) fail(ORR_INVALID, "transpose: the tensor has {} dims, at least 2 expected", rank);
  Dims order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(to_dim(lua_tointeger(L, 2), rank))],
            order[static_cast<size_t>(to_dim(lua_tointeger(L, 3), rank))]);
  push_tensor(L, build::transpose(program, x, order));
  return 1;
}

int permute(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  Dims order = rest_integers(L, 2, "permute: dim");
  for (int64_t& dim : order) dim = to_dim(dim, rank_of(L, x));
  push_tensor(L, build::transpose(program, x, order));
  return 1;
}

// A 1-based position, negative from the end, as 0-based.
int64_t position(int64_t at, int64_t extent, const char* what) {
  const int64_t zero_based = at > 0 ? at - 1 : extent + at;
  if (at == 0 || zero_based < 0 || zero_based >= extent) {
    fail(ORR_INVALID, "slice: {} {} does not exist: the dim has {} elements", what, at, extent);
  }
  return zero_based;
}

int slice(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const int64_t dim = to_dim(lua_tointeger(L, 2), rank_of(L, x));
  const int64_t extent = program.type(x).dims[static_cast<size_t>(dim)];
  const int64_t first = position(lua_tointeger(L, 3), extent, "first");
  const int64_t last = position(lua_tointeger(L, 4), extent, "last");
  push_tensor(L, build::slice(program, x, dim, first, last + 1));
  return 1;
}

int split(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const int64_t dim = to_dim(lua_tointeger(L, 2), rank_of(L, x));
  Dims sizes = to_integers(L, 3, "split: size");
  if (!lua_istable(L, 3)) {
    const int64_t extent = program.type(x).dims[static_cast<size_t>(dim)];
    if (sizes[0] < 1 || extent % sizes[0] != 0) {
      fail(ORR_INVALID, "split: {} elements do not divide into {} equal parts", extent, sizes[0]);
    }
    sizes.assign(static_cast<size_t>(sizes[0]), extent / sizes[0]);
  }
  const std::vector<ValueId> parts = build::split(program, x, dim, sizes);
  luaL_checkstack(L, static_cast<int>(parts.size()), "split: too many parts");
  for (ValueId part : parts) push_tensor(L, part);
  return static_cast<int>(parts.size());
}

int concat(lua_State* L) {
  Program& program = program_here(L);
  std::vector<ValueId> parts(lua_rawlen(L, 1));
  if (parts.empty()) fail(ORR_INVALID, "concat: the list of tensors is empty");
  for (size_t i = 0; i < parts.size(); ++i) {
    lua_rawgeti(L, 1, static_cast<lua_Integer>(i) + 1);
    parts[i] = value_at(L, -1);
    lua_pop(L, 1);
  }
  const int64_t dim = to_dim(lua_tointeger(L, 2), rank_of(L, parts[0]));
  push_tensor(L, build::concat(program, parts, dim));
  return 1;
}

int pad(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const int64_t dim = to_dim(lua_tointeger(L, 2), rank_of(L, x)), size = lua_tointeger(L, 3);
  Dims more = program.type(x).dims;
  int64_t& extent = more[static_cast<size_t>(dim)];
  if (size < extent)
    fail(ORR_INVALID, "pad: dim {} has {} elements, more than {}", dim + 1, extent, size);
  extent = size - extent;
  if (extent == 0) return push_tensor(L, x), 1;
  const ValueId zero = build::zeros_like(program, build::slice(program, x, dim, 0, 1));
  push_tensor(L, build::concat(program, {x, build::broadcast(program, zero, more)}, dim));
  return 1;
}

int gather(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::gather(program, value_at(L, 1), value_at(L, 2)));
  return 1;
}

int take(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::take(program, value_at(L, 1), value_at(L, 2)));
  return 1;
}

int put(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::put(program, value_at(L, 1), value_at(L, 2), operand_at(L, 3)));
  return 1;
}

int scatter_add(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::scatter_add(program, value_at(L, 1), value_at(L, 2), value_at(L, 3)));
  return 1;
}

// A run-time index: a scalar tensor, or a number.
ValueId index_at(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) return value_at(L, index);
  return program_here(L).constant(static_cast<double>(to_integer(L, index, "at")), ORR_I64);
}

int slice_at(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const int64_t dim = to_dim(lua_tointeger(L, 2), rank_of(L, x));
  push_tensor(L, build::slice_at(program, x, dim, index_at(L, 3), lua_tointeger(L, 4)));
  return 1;
}

int update_slice(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const int64_t dim = to_dim(lua_tointeger(L, 3), rank_of(L, x));
  push_tensor(L, build::update_slice(program, x, value_at(L, 2), dim, index_at(L, 4)));
  return 1;
}

int stop_gradient(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::stop_gradient(program, value_at(L, 1)));
  return 1;
}

}  // namespace

std::vector<Api> shape_api() {
  const char* t = "orrery.Tensor";
  return {
      {"Tensor",
       "matmul",
       t,
       "Matrix product over the last two dims; earlier dims are batches.",
       matmul,
       {{"self", "tensor"}, {"other", "tensor"}, {"options", "options", "nil"}},
       {{"transpose_a", "boolean", "false", "use this tensor transposed"},
        {"transpose_b", "boolean", "false", "use the other tensor transposed"}}},
      {"Tensor",
       "reshape",
       t,
       "Other dims, same elements; one may be -1.",
       reshape,
       {{"self", "tensor"}, {"dims", "rest"}},
       {}},
      {"Tensor",
       "broadcast",
       t,
       "Repeats dims of size 1 up to these dims.",
       broadcast,
       {{"self", "tensor"}, {"dims", "rest"}},
       {}},
      {"Tensor",
       "transpose",
       t,
       "Swaps two dims, by default the last two.",
       transpose,
       {{"self", "tensor"}, {"first", "integer", "-2"}, {"second", "integer", "-1"}},
       {}},
      {"Tensor",
       "permute",
       t,
       "Reorders the dims.",
       permute,
       {{"self", "tensor"}, {"order", "rest"}},
       {}},
      {"Tensor",
       "slice",
       t,
       "Elements first..last of a dim, both included.",
       slice,
       {{"self", "tensor"}, {"dim", "integer"}, {"first", "integer"}, {"last", "integer", "-1"}},
       {}},
      {"Tensor",
       "split",
       t,
       "Cuts a dim into sizes, or into n equal parts; returns all parts.",
       split,
       {{"self", "tensor"}, {"dim", "integer"}, {"sizes", "integers"}},
       {}},
      {"orrery",
       "concat",
       t,
       "Joins tensors along a dim.",
       concat,
       {{"tensors", "table"}, {"dim", "integer", "-1"}},
       {}},
      {"Tensor",
       "pad",
       t,
       "Zeros behind the elements of a dim, up to `size` of them.",
       pad,
       {{"self", "tensor"}, {"dim", "integer"}, {"size", "integer"}},
       {}},
      {"Tensor",
       "gather",
       t,
       "Rows of this [V,C] table by 0-based ids of any shape.",
       gather,
       {{"self", "tensor"}, {"ids", "tensor"}},
       {}},
      {"Tensor",
       "take",
       t,
       "The elements at 0-based positions of the tensor, seen as one row.",
       take,
       {{"self", "tensor"}, {"index", "tensor"}},
       {}},
      {"Tensor",
       "put",
       t,
       "The tensor, seen as one row, with the elements at these positions replaced by a number or "
       "by others.",
       put,
       {{"self", "tensor"}, {"index", "tensor"}, {"value", "operand"}},
       {}},
      {"Tensor",
       "scatter_add",
       t,
       "The tensor with rows added at 0-based positions of its first dim; what shares a position "
       "adds up.",
       scatter_add,
       {{"self", "tensor"}, {"index", "tensor"}, {"rows", "tensor"}},
       {}},
      {"Tensor",
       "slice_at",
       t,
       "`size` elements of a dim from the 0-based run-time index `at`.",
       slice_at,
       {{"self", "tensor"}, {"dim", "integer"}, {"at", "operand"}, {"size", "integer"}},
       {}},
      {"Tensor",
       "update_slice",
       t,
       "This tensor with `part` written at the 0-based index `at`.",
       update_slice,
       {{"self", "tensor"}, {"part", "tensor"}, {"dim", "integer"}, {"at", "operand"}},
       {}},
      {"Tensor",
       "stop_gradient",
       t,
       "The same values; no gradient flows back.",
       stop_gradient,
       {{"self", "tensor"}},
       {}},
      {"orrery",
       "stop_gradient",
       t,
       "The same values; no gradient flows back.",
       stop_gradient,
       {{"tensor", "tensor"}},
       {}},
  };
}

}  // namespace orrery::lua
