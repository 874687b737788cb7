// SPDX-License-Identifier: Apache-2.0
//
// Tensor methods that move elements. Dims and positions are 1-based and count from the end when
// negative; ids (gather, slice_at) are 0-based.
#include <algorithm>
#include <numeric>

#include "lua/call.h"
#include "program/build.h"
#include "program/build_gather_matmul.h"

namespace orrery::lua {
namespace {

size_t rank_of(Program& p, ValueId x) { return p.type(x).dims.size(); }

// The integers from argument `first` on: x:reshape(2, 3) or x:reshape{2, 3}.
Dims rest_integers(lua_State* L, int first, const char* what) {
  if (lua_istable(L, first)) return to_integers(L, first, what);
  Dims list;
  for (int i = first; i <= lua_gettop(L); ++i) list.push_back(to_integer(L, i, what));
  return list;
}

ValueId matmul(Program& p, ValueId a, ValueId b, const Table& options) {
  return build::matmul(p, a, b, options.flag("transpose_a"), options.flag("transpose_b"));
}

ValueId gather_matmul(Program& p, ValueId x, ValueId w, ValueId index, const Table& options) {
  return build::gather_matmul(p, x, w, index, options.flag("transpose_b"));
}

ValueId reshape(lua_State* L, Program& p, ValueId x, Index rest) {
  return build::reshape(p, x, rest_integers(L, rest, "reshape: dim"));
}

ValueId broadcast(lua_State* L, Program& p, ValueId x, Index rest) {
  return build::broadcast(p, x, rest_integers(L, rest, "broadcast: dim"));
}

ValueId transpose(Program& p, ValueId x, int64_t first, int64_t second) {
  const size_t rank = rank_of(p, x);
  if (rank < 2) fail(ORR_INVALID, "transpose: the tensor has {} dims, at least 2 expected", rank);
  Dims order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(to_dim(first, rank))],
            order[static_cast<size_t>(to_dim(second, rank))]);
  return build::transpose(p, x, order);
}

ValueId permute(lua_State* L, Program& p, ValueId x, Index rest) {
  Dims order = rest_integers(L, rest, "permute: dim");
  for (int64_t& dim : order) dim = to_dim(dim, rank_of(p, x));
  return build::transpose(p, x, order);
}

// A 1-based position, negative from the end, as 0-based.
int64_t position(int64_t at, int64_t extent, const char* what) {
  const int64_t zero_based = at > 0 ? at - 1 : extent + at;
  if (at == 0 || zero_based < 0 || zero_based >= extent) {
    fail(ORR_INVALID, "slice: {} {} does not exist: the dim has {} elements", what, at, extent);
  }
  return zero_based;
}

// Index by index: kernels need not know negative strides.
ValueId reversed(Program& p, ValueId x, int64_t dim) {
  const Dims each(static_cast<size_t>(p.type(x).dims[static_cast<size_t>(dim)]), 1);
  std::vector<ValueId> parts = build::split(p, x, dim, each);
  std::reverse(parts.begin(), parts.end());
  return build::concat(p, parts, dim);
}

ValueId slice(Program& p, ValueId x, Dim dim, int64_t first, int64_t last, int64_t step) {
  const int64_t extent = p.type(x).dims[static_cast<size_t>(dim)];
  const int64_t begin = position(first, extent, "first"), end = position(last, extent, "last");
  if (step == 0) fail(ORR_INVALID, "slice: step 0: give 1, another one, or -1 to go backwards");
  if (step > 0) return build::every(p, build::slice(p, x, dim, begin, end + 1), dim, step);
  if (begin < end)
    fail(ORR_INVALID, "slice: from {} to {} there is no step of {}", first, last, step);
  return build::every(p, reversed(p, build::slice(p, x, dim, end, begin + 1), dim), dim, -step);
}

std::vector<ValueId> split(lua_State* L, Program& p, ValueId x, Dim dim, Index parts) {
  Dims sizes = to_integers(L, parts, "split: size");
  if (!lua_istable(L, parts)) {
    const int64_t extent = p.type(x).dims[static_cast<size_t>(dim)];
    if (sizes[0] < 1 || extent % sizes[0] != 0) {
      fail(ORR_INVALID, "split: {} elements do not divide into {} equal parts", extent, sizes[0]);
    }
    sizes.assign(static_cast<size_t>(sizes[0]), extent / sizes[0]);
  }
  return build::split(p, x, dim, sizes);
}

ValueId concat(Program& p, const std::vector<ValueId>& parts, int64_t dim) {
  if (parts.empty()) fail(ORR_INVALID, "concat: the list of tensors is empty");
  return build::concat(p, parts, to_dim(dim, rank_of(p, parts[0])));
}

ValueId pad(Program& p, ValueId x, Dim dim, int64_t size, const Table& options) {
  const int64_t extent = p.type(x).dims[static_cast<size_t>(dim)];
  const int64_t before = options.integer("before"), after = size - extent - before;
  if (before < 0 || after < 0)
    fail(ORR_INVALID, "pad: dim {} has {} elements: with {} before them they are more than {}",
         dim + 1, extent, before, size);
  return build::pad(p, x, dim, before, after, options.number("value"));
}

// One number for each of n dims, of an option that may give one for all.
Dims each_dim(const Table& options, const char* name, size_t n) {
  Dims sizes = options.integers(name);
  if (sizes.size() == 1) sizes.assign(n, sizes[0]);
  return sizes;
}

ValueId windows(lua_State* L, Program& p, ValueId x, Index size, const Table& options) {
  const Dims sizes = to_integers(L, size, "windows: size");
  return build::windows(p, x, sizes, each_dim(options, "stride", sizes.size()),
                        each_dim(options, "dilation", sizes.size()));
}

ValueId fold(lua_State* L, Program& p, ValueId x, Index length, const Table& options) {
  const Dims lengths = to_integers(L, length, "fold: length");
  return build::fold(p, x, lengths, each_dim(options, "stride", lengths.size()),
                     each_dim(options, "dilation", lengths.size()));
}

// A run-time index: a scalar tensor, or a number.
ValueId index_at(lua_State* L, Program& p, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) return value_at(L, index);
  return p.constant(static_cast<double>(to_integer(L, index, "at")), ORR_I64);
}

ValueId slice_at(lua_State* L, Program& p, ValueId x, Dim dim, Index at, int64_t size) {
  return build::slice_at(p, x, dim, index_at(L, p, at), size);
}

ValueId update_slice(lua_State* L, Program& p, ValueId x, ValueId part, Dim dim, Index at) {
  return build::update_slice(p, x, part, dim, index_at(L, p, at));
}

}  // namespace

std::vector<Api> shape_api() {
  return {
      {"Tensor:matmul(other: Tensor, options?) -> Tensor; Matrix product over the last two dims; "
       "earlier dims are batches. "
       "@option transpose_a: boolean = false; use this tensor transposed "
       "@option transpose_b: boolean = false; use the other tensor transposed",
       call<matmul>},
      {"Tensor:gather_matmul(matrices: Tensor, index: Tensor, options?) -> Tensor; Each row of "
       "[..., d] times the one of the matrices [number, d, outputs] that its 0-based index [...] "
       "names; 0 where that is -1. A row costs one product, however many matrices there are. "
       "@option transpose_b: boolean = false; the matrices are [number, outputs, d]",
       call<gather_matmul>},
      {"Tensor:reshape(...) -> Tensor; Other dims, same elements; one may be -1.", call<reshape>},
      {"Tensor:broadcast(...) -> Tensor; Repeats dims of size 1 up to these dims.",
       call<broadcast>},
      {"Tensor:transpose(first: integer = -2, second: integer = -1) -> Tensor; Swaps two dims, by "
       "default the last two.",
       call<transpose>},
      {"Tensor:permute(...) -> Tensor; Reorders the dims.", call<permute>},
      {"Tensor:slice(dim: integer, first: integer, last: integer = -1, step: integer = 1) -> "
       "Tensor; Elements first..last of a dim, both included, or every step-th of them; of a "
       "negative "
       "step backwards, such as from -1 to 1.",
       call<slice>},
      {"Tensor:split(dim: integer, sizes: integers) -> Tensor; Cuts a dim into sizes, or into n "
       "equal parts; returns all parts.",
       call<split>},
      {"orrery.concat(tensors: list, dim: integer = -1) -> Tensor; Joins tensors along a dim.",
       call<concat>},
      {"Tensor:pad(dim: integer, size: integer, options?) -> Tensor; Zeros behind the elements of "
       "a dim, up to `size` of them. "
       "@option before: integer = 0; so many in front of them "
       "@option value: number = 0; instead of zeros",
       call<pad>},
      {"Tensor:windows(size: integers, options?) -> Tensor; [..., L..., C] as [..., O..., K..., "
       "C]: the windows of `size` K over as many dims before the last. Nothing is copied. "
       "@option stride: integers = 1; from a window to the next, for all dims or for each "
       "@option dilation: integers = 1; from an element of a window to the next",
       call<windows>},
      {"Tensor:fold(length: integers, options?) -> Tensor; [..., O..., K..., C] as [..., L..., C]: "
       "windows in their places again; what they share is added up. "
       "@option stride: integers = 1; from a window to the next, for all dims or for each "
       "@option dilation: integers = 1; from an element of a window to the next",
       call<fold>},
      {"Tensor:gather(ids: Tensor) -> Tensor; Rows of this [V,C] table by 0-based ids of any "
       "shape.",
       call<build::gather>},
      {"Tensor:take(index: Tensor) -> Tensor; The elements at 0-based positions of the tensor, "
       "seen as one row.",
       call<build::take>},
      {"Tensor:put(index: Tensor, value: operand) -> Tensor; The tensor, seen as one row, with the "
       "elements at these positions replaced by a number or by others; several for one position "
       "add up.",
       call<build::put>},
      {"Tensor:scatter_add(index: Tensor, rows: Tensor) -> Tensor; The tensor with rows added at "
       "0-based positions of its first dim; what shares a position adds up.",
       call<build::scatter_add>},
      {"Tensor:slice_at(dim: integer, at: operand, size: integer) -> Tensor; `size` elements of a "
       "dim from the 0-based run-time index `at`.",
       call<slice_at>},
      {"Tensor:update_slice(part: Tensor, dim: integer, at: operand) -> Tensor; This tensor with "
       "`part` written at the 0-based index `at`.",
       call<update_slice>},
      {"Tensor:stop_gradient() -> Tensor; The same values; no gradient flows back.",
       call<build::stop_gradient>},
      {"orrery.stop_gradient(tensor: Tensor) -> Tensor; The same values; no gradient flows back.",
       call<build::stop_gradient>},
  };
}

}  // namespace orrery::lua
