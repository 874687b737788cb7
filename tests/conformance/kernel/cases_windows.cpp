// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

// Dims of a window op, and of everything that runs over all their indices.
using Dims = std::vector<int64_t>;

// Calls visit(index) for all indices of dims, the last dim fastest.
template <class Visit>
void each_index(const Dims& dims, Visit&& visit) {
  Dims index(dims.size(), 0);
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  for (int64_t i = 0; i < count; ++i) {
    visit(index);
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
}

std::vector<Values> fold_oracle(const Case& c, const std::vector<Values>& x) {
  const orr_tensor &from = c.in[0], &to = c.out[0];
  const Dims &stride = c.attrs[0].list, &dilation = c.attrs[1].list;
  const size_t n = stride.size();
  Values y(size_t(elements(to)), 0);
  size_t at = 0;
  each_index(Dims(from.dims, from.dims + from.rank), [&](const Dims& i) {
    int64_t place = i[0];
    for (size_t d = 0; d < n; ++d)
      place = place * to.dims[1 + d] + i[1 + d] * stride[d] + i[1 + n + d] * dilation[d];
    y[size_t(place * to.dims[1 + n] + i[1 + 2 * n])] += x[0][at++];
  });
  return {y};
}

// x[lead, windows..., size..., width]; `rest` behind the last window is reached by none.
Case fold(int32_t dtype, int64_t lead, const Dims& windows, const Dims& size, const Dims& stride,
          const Dims& dilation, int64_t width, int64_t rest = 0) {
  Dims from{lead}, to{lead};
  from.insert(from.end(), windows.begin(), windows.end());
  from.insert(from.end(), size.begin(), size.end());
  from.push_back(width);
  Case c;
  for (size_t d = 0; d < windows.size(); ++d) {
    to.push_back((windows[d] - 1) * stride[d] + (size[d] - 1) * dilation[d] + 1 + rest);
    c.depth *= double(size[d]);
  }
  to.push_back(width);
  c.kind = "fold";
  for (const Dims& dims : {from, stride, dilation, to})
    for (int64_t d : dims) c.note += (c.note.empty() ? "" : "x") + std::to_string(d);
  c.in = {tensor(dtype, from)};
  c.out = {tensor(dtype, to)};
  c.attrs = {list("stride", stride), list("dilation", dilation)};
  c.oracle = fold_oracle;
  c.exact = true;
  if (lead == 256) c.axes = {{{0}, {0}}};
  return c;
}

}  // namespace

std::vector<Case> window_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kAll) {
    if (dtype == ORR_BOOL || dtype == ORR_U8) continue;
    for (const Case& c :
         {fold(dtype, 2, {4}, {3}, {1}, {1}, 17), fold(dtype, 1, {3}, {2}, {3}, {1}, 5, 1),
          fold(dtype, 256, {2}, {3}, {1}, {2}, 3),
          fold(dtype, 2, {5, 4}, {3, 3}, {1, 1}, {1, 1}, 33),
          fold(dtype, 3, {2, 3}, {3, 2}, {2, 1}, {1, 3}, 16),
          fold(dtype, 2, {2, 1, 3}, {2, 3, 1}, {1, 2, 3}, {3, 1, 1}, 4, 2),
          fold(dtype, 1, {1}, {7}, {1}, {1}, 1), fold(dtype, 0, {2}, {2}, {1}, {1}, 3)})
      cases.push_back(c);
  }
  return cases;
}

}  // namespace kernel_suite
