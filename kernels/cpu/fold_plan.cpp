// SPDX-License-Identifier: Apache-2.0
#include <orrery/sdk/plugin.hpp>

#include <algorithm>
#include <vector>

#include "fold.h"

namespace orr_cpu {
namespace {

// One windowed dim of a fold; strides are those of x.
struct Dim {
  int64_t windows, size, stride, dilation, length, window_stride, element_stride;
};

int64_t* copy_of(const std::vector<int64_t>& v) {
  return std::copy(v.begin(), v.end(), new int64_t[v.size()]) - v.size();
}

void make_offsets(const Dim& d, int64_t*& first, int64_t*& offset) {
  std::vector<int64_t> starts{0}, found;
  for (int64_t l = 0; l < d.length; ++l) {
    for (int64_t o = 0; o < d.windows; ++o) {
      const int64_t at = l - o * d.stride, k = at / d.dilation;
      if (at >= 0 && at % d.dilation == 0 && k < d.size)
        found.push_back(o * d.window_stride + k * d.element_stride);
    }
    starts.push_back(int64_t(found.size()));
  }
  first = copy_of(starts), offset = copy_of(found);
}

}  // namespace

FoldPlan::FoldPlan(const orr_op& op) {
  const orr_tensor &x = op.in[0], &y = op.out[0];
  const orr_attr &stride = *orr::attr(op, "stride"), &dilation = *orr::attr(op, "dilation");
  const int n = stride.count;
  lead = x.dims[0], width = x.dims[1 + 2 * n];
  block = lead > 0 ? orr::elements(x) / lead : 0;
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - n);
    Dim dim{1, 1, 1, 1, 1, 0, 0};
    if (i >= 0)
      dim = {x.dims[1 + i], x.dims[1 + n + i], stride.ints[i],      dilation.ints[i],
             y.dims[1 + i], x.strides[1 + i],  x.strides[1 + n + i]};
    length[d] = dim.length;
    make_offsets(dim, first[d], offset[d]);
  }
}

FoldPlan::~FoldPlan() {
  for (int d = 0; d < 3; ++d) delete[] first[d], delete[] offset[d];
}

void fold_supports(const orr_op& op, orr_support& out) {
  const int32_t dtype = op.in[0].dtype;
  if (dtype != ORR_F32 && dtype != ORR_BF16 && dtype != ORR_F16 && dtype != ORR_F64)
    return refuse(out, "only f32, bf16, f16 and f64");
  accept(out, "lanes16/1");
}

}  // namespace orr_cpu
