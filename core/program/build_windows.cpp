// SPDX-License-Identifier: Apache-2.0
//
// Windows over dims, their sums, steps through a dim, and borders.
#include "program/build.h"
#include "program/op.h"

namespace orrery::build {

ValueId windows(Program& p, ValueId x, const Dims& size, const Dims& stride, const Dims& dilation) {
  return p.add1("windows", {x}, {{"size", size}, {"stride", stride}, {"dilation", dilation}});
}

ValueId fold(Program& p, ValueId x, const Dims& length, const Dims& stride, const Dims& dilation) {
  return p.add1("fold", {x}, {{"length", length}, {"stride", stride}, {"dilation", dilation}});
}

// Windows of one element; they are taken of the dim before the last.
ValueId every(Program& p, ValueId x, int64_t dim, int64_t step) {
  if (step == 1) return x;
  Dims dims = p.type(x).dims;
  const size_t at = static_cast<size_t>(dim), last = dims.size() - 1;
  const bool is_last = at == last;
  if (is_last)
    dims.push_back(1), x = reshape(p, x, dims);
  else
    x = move_dim(p, x, at, last - 1);
  x = windows(p, x, {1}, {step}, {1});
  dims = p.type(x).dims;
  dims.erase(dims.end() - 2);
  if (is_last) dims.pop_back();
  x = reshape(p, x, dims);
  return is_last ? x : move_dim(p, x, last - 1, at);
}

ValueId pad(Program& p, ValueId x, int64_t dim, int64_t before, int64_t after, double value) {
  const Type type = p.type(x);
  const auto border = [&](int64_t n) {
    Dims dims = type.dims;
    const ValueId one = broadcast_like(p, p.constant(value, type.dtype), slice(p, x, dim, 0, 1));
    dims[static_cast<size_t>(dim)] = n;
    return broadcast(p, one, dims);
  };
  std::vector<ValueId> parts;
  if (before > 0) parts.push_back(border(before));
  parts.push_back(x);
  if (after > 0) parts.push_back(border(after));
  return concat(p, parts, dim);
}

}  // namespace orrery::build
