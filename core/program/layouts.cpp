// SPDX-License-Identifier: Apache-2.0
#include "program/layouts.h"

#include <algorithm>

namespace orrery {

std::vector<size_t> order_in_memory(const Layout& x) {
  std::vector<size_t> order;
  for (size_t i = 0; i < x.dims.size(); ++i)
    if (x.dims[i] != 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return x.strides[a] > x.strides[b]; });
  return order;
}

Layout layout_like(const Expr& expr, const std::vector<Layout>& in, const Type& out) {
  Layout y = Layout::contiguous(out);
  if (draws(expr)) return y;
  std::vector<size_t> order = order_in_memory(y);
  bool found = false;
  for (const Layout& x : in) {
    if (x.dims != out.dims) continue;
    const std::vector<size_t> here = order_in_memory(x);
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
