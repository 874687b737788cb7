// SPDX-License-Identifier: Apache-2.0
#include "program/strided.h"

#include <algorithm>

namespace orrery {

Strided transposed(const Strided& x, const Dims& permutation) {
  Strided view = x;
  for (size_t i = 0; i < permutation.size(); ++i) {
    view.dims[i] = x.dims[static_cast<size_t>(permutation[i])];
    view.strides[i] = x.strides[static_cast<size_t>(permutation[i])];
  }
  return view;
}

Dims inverse(const Dims& permutation) {
  Dims back(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    back[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return back;
}

bool reshaped(const Strided& x, const Dims& dims, Strided& view) {
  view = Strided::contiguous({x.dtype, dims});
  const size_t r = x.dims.size();
  // One row keeps the stride of its dims of extent 1: see as_matrix in ops/matmul.cpp.
  if (x.is_contiguous() && r > 1 && dims.size() > 1 && dims.back() == x.dims.back())
    if (const Type one{x.dtype, dims}; one.elements() == dims.back())
      std::fill(view.strides.begin(), view.strides.end() - 1, x.strides[r - 2]);
  if (x.is_contiguous()) return true;
  size_t i = 0, j = 0;
  while (i < x.dims.size() || j < dims.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < x.dims.size() ? x.dims[i++] : 1, b = j < dims.size() ? dims[j++] : 1;
    while (a != b) {
      if (a < b && i < x.dims.size())
        a *= x.dims[i++];
      else if (j < dims.size())
        b *= dims[j++];
      else
        return false;
    }
    int64_t dim, stride;
    if (!merge_dims(x, i0, i, dim, stride)) return false;
    for (size_t k = j; k-- > j0; stride *= dims[k]) view.strides[k] = stride;
  }
  return true;
}

std::vector<size_t> order_in_memory(const Strided& x) {
  std::vector<size_t> order;
  for (size_t i = 0; i < x.dims.size(); ++i)
    if (x.dims[i] != 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return x.strides[a] > x.strides[b]; });
  return order;
}

// Whether several indices share an element, as in windows; `order` is x's in memory.
static bool overlaps(const Strided& x, const std::vector<size_t>& order) {
  for (size_t i = 0; i + 1 < order.size(); ++i)
    if (x.strides[order[i]] < x.dims[order[i + 1]] * x.strides[order[i + 1]]) return true;
  return !order.empty() && x.strides[order.back()] == 0;
}

Strided layout_like(const Expr& expr, const std::vector<Strided>& in, const Type& out) {
  Strided y = Strided::contiguous(out);
  if (draws(expr)) return y;
  std::vector<size_t> order = order_in_memory(y);
  bool found = false;
  for (const Strided& x : in) {
    if (x.dims != out.dims) continue;
    const std::vector<size_t> here = order_in_memory(x);
    if (overlaps(x, here)) continue;
    if (found && here != order) return y;
    order = here, found = true;
  }
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= out.dims[order[i]]) y.strides[order[i]] = stride;
  return y;
}

bool draws(const Expr& expr) {
  return std::any_of(expr.instrs.begin(), expr.instrs.end(),
                     [](const orr_instr& i) { return i.fn == ORR_FN_RAND; });
}

}  // namespace orrery
