// SPDX-License-Identifier: Apache-2.0
//
// Tensor methods that reduce: sums, means, extremes, the largest elements.
#include <algorithm>

#include "lua/call.h"
#include "program/build.h"

namespace orrery::lua {
namespace {

enum Fold { sum, sumsq, mean, max, min };
constexpr const char* kNames[] = {"sum", "sumsq", "mean", "max", "min"};

// Of `over`: nil (all dims), a dim or a list of dims.
Dims dims_of(lua_State* L, Program& p, ValueId x, Index over) {
  Dims dims = lua_isnil(L, over) ? Dims{} : to_integers(L, over, "dim");
  for (int64_t& dim : dims) dim = to_dim(dim, p.type(x).dims.size());
  return dims;
}

template <Fold fold>
ValueId reduce(lua_State* L, Program& p, ValueId x, Index over, const Table& options) {
  const Dims dims = dims_of(L, p, x, over);
  const bool keep = options.flag("keep");
  return fold == mean ? build::mean(p, x, dims, keep)
                      : build::reduce(p, kNames[fold], x, dims, keep);
}

const std::string kKeep = " @option keep: boolean = false; keep the reduced dims with size 1";

template <Fold fold>
Api row(const std::string& doc) {
  return {
      fmt::format("Tensor:{}(dims?: integers, options?) -> Tensor; {}{}", kNames[fold], doc, kKeep),
      call<reduce<fold>>};
}

ValueId argmax(Program& p, ValueId x, Dim dim, const Table& options) {
  Dims dims = p.type(x).dims;
  const auto at = static_cast<size_t>(dim.number);
  const ValueId place = build::argmax(p, build::move_dim(p, x, at, dims.size() - 1));
  if (!options.flag("keep")) return place;
  dims[at] = 1;
  return build::reshape(p, place, dims);
}

std::vector<ValueId> microbatch_mean(Program& p, ValueId x) {
  const auto [mean, count] = build::microbatch_mean(p, x);
  return {mean, count};
}

}  // namespace

std::vector<Api> reduce_api() {
  return {
      row<sum>("Sum over dims (all, if left out); of integers in i64."),
      row<sumsq>("Sum of squares over dims."),
      row<mean>("Mean over dims; over the batch, of the samples that count."),
      row<max>("Largest element over dims. Of several equal ones each gets an equal part of the "
               "gradient."),
      row<min>("Smallest element over dims, with a gradient as that of max."),
      {"Tensor:microbatch_mean() -> orrery.Tensor, orrery.Tensor; For each sample, dim 1, the mean "
       "over the samples of its microbatch, and how many these are.",
       call<microbatch_mean>},
      {"Tensor:argmax(dim: integer = -1, options?) -> Tensor; 0-based position of the largest of a "
       "dim." +
           kKeep,
       call<argmax>},
      {"Tensor:topk(k: integer) -> orrery.Tensor, orrery.Tensor; The k largest of the last dim, "
       "descending, and their 0-based positions.",
       call<build::topk>},
  };
}

}  // namespace orrery::lua
