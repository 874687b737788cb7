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

ValueId var(lua_State* L, Program& p, ValueId x, Index over, const Table& options) {
  const Dims dims = dims_of(L, p, x, over);
  int64_t n = dims.empty() ? p.type(x).elements() : 1;
  for (int64_t dim : dims) n *= p.type(x).dims[static_cast<size_t>(dim)];
  const int64_t others = std::max<int64_t>(n - options.integer("correction"), 0);
  const ValueId centred = p.pointwise(ORR_FN_SUB, {x, build::mean(p, x, dims, true)});
  const ValueId square = p.pointwise(ORR_FN_MUL, {centred, centred});
  const ValueId mean = build::mean(p, square, dims, options.flag("keep"));
  const double factor = static_cast<double>(n) / static_cast<double>(others);
  return others == n ? mean : p.pointwise(ORR_FN_MUL, {mean, Operand::number(factor)});
}

// Of what is less than the largest, so that no power overflows.
ValueId logsumexp(lua_State* L, Program& p, ValueId x, Index over, const Table& options) {
  const Dims dims = dims_of(L, p, x, over);
  ValueId top = build::stop_gradient(p, build::reduce(p, "max", x, dims, true));
  const ValueId finite = p.pointwise(ORR_FN_ISFINITE, {top});
  top = p.pointwise(ORR_FN_SELECT, {finite, top, Operand::number(0)});
  const ValueId power = p.pointwise(ORR_FN_EXP, {p.pointwise(ORR_FN_SUB, {x, top})});
  const ValueId sum = build::reduce(p, "sum", power, dims, options.flag("keep"));
  top = build::reshape(p, top, p.type(sum).dims);
  return p.pointwise(ORR_FN_ADD, {p.pointwise(ORR_FN_LOG, {sum}), top});
}

// In log2(n) additions: x[i] + x[i - 1], then + x[i - 2], + x[i - 4], ...
ValueId cumsum(Program& p, ValueId x, Dim dim) {
  const int64_t n = p.type(x).dims[static_cast<size_t>(dim)];
  for (int64_t step = 1; step < n; step *= 2) {
    const ValueId before = build::pad(p, build::slice(p, x, dim, 0, n - step), dim, step, 0, 0);
    x = p.pointwise(ORR_FN_ADD, {x, before});
  }
  return x;
}

// All of the largest elements; where they ascend, of -x, or of -1 - x, which no integer overflows.
std::vector<ValueId> sort(Program& p, ValueId x, Dim dim, const Table& options) {
  const auto flip = [&](ValueId value) {
    if (options.flag("descending")) return value;
    return is_real(p.type(x).dtype) ? p.pointwise(ORR_FN_NEG, {value})
                                    : p.pointwise(ORR_FN_SUB, {Operand::number(-1), value});
  };
  const auto from = static_cast<size_t>(static_cast<int64_t>(dim));
  const size_t last = p.type(x).dims.size() - 1;
  const ValueId rows = build::move_dim(p, flip(x), from, last);
  const std::vector<ValueId> found = build::topk(p, rows, p.type(rows).dims.back());
  return {flip(build::move_dim(p, found[0], last, from)), build::move_dim(p, found[1], last, from)};
}

const std::string kKeep = " @option keep: boolean = false; keep the reduced dims with size 1";

template <Fold fold>
Api row(const std::string& doc) {
  return {
      fmt::format("Tensor:{}(dims?: integers, options?) -> Tensor; {}{}", kNames[fold], doc, kKeep),
      call<reduce<fold>>};
}

std::vector<ValueId> microbatch_mean(Program& p, ValueId x) {
  const auto [mean, count] = build::microbatch_mean(p, x);
  return {mean, count};
}

}  // namespace

std::vector<Api> reduce_api() {
  return {
      row<sum>("Sum over dims (all, if left out)."),
      row<sumsq>("Sum of squares over dims."),
      row<mean>("Mean over dims; over the batch, of the samples that count."),
      row<max>("Largest element over dims. Of several equal ones each gets an equal part of the "
               "gradient."),
      row<min>("Smallest element over dims, with a gradient as that of max."),
      {"Tensor:var(dims?: integers, options?) -> Tensor; Variance over dims." + kKeep +
           " @option correction: integer = 1; of n elements n less this many are divided by",
       call<var>},
      {"Tensor:logsumexp(dims?: integers, options?) -> Tensor; Logarithm of the sum of exp(x) over "
       "dims." +
           kKeep,
       call<logsumexp>},
      {"Tensor:cumsum(dim: integer) -> Tensor; Sums of the elements of a dim up to and with each.",
       call<cumsum>},
      {"Tensor:microbatch_mean() -> orrery.Tensor, orrery.Tensor; For each sample, dim 1, the mean "
       "over the samples of its microbatch, and how many these are.",
       call<microbatch_mean>},
      {"Tensor:argmax() -> Tensor; 0-based position of the largest of the last dim.",
       call<build::argmax>},
      {"Tensor:topk(k: integer) -> orrery.Tensor, orrery.Tensor; The k largest of the last dim, "
       "descending, and their 0-based positions.",
       call<build::topk>},
      {"Tensor:sort(dim: integer = -1, options?) -> orrery.Tensor, orrery.Tensor; The elements of "
       "a "
       "dim in ascending order and their 0-based positions. Equal elements keep their order; NaN "
       "comes first. The gradient compares the positions of each row with each other: n times n. "
       "@option descending: boolean = false; the largest first",
       call<sort>},
  };
}

}  // namespace orrery::lua
