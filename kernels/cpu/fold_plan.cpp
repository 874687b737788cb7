// SPDX-License-Identifier: Apache-2.0
#include <orrery/sdk/plugin.hpp>

#include "fold.h"

namespace orr_cpu {

FoldGeometry::FoldGeometry(const orr_op& op) {
  const orr_attr &strides = *orr::attr(op, "stride"), &dilations = *orr::attr(op, "dilation");
  const int n = strides.count, shift = 3 - n;
  for (int i = 0; i < n; ++i) {
    count[shift + i] = op.in[0].dims[1 + i], size[shift + i] = op.in[0].dims[1 + n + i];
    length[shift + i] = op.out[0].dims[1 + i];
    stride[shift + i] = strides.ints[i], dilation[shift + i] = dilations.ints[i];
  }
  lead = op.in[0].dims[0], width = op.in[0].dims[1 + 2 * n];
}

void fold_supports(const orr_op& op, orr_support& out) {
  const int32_t dtype = op.in[0].dtype;
  if (dtype != ORR_F32 && dtype != ORR_BF16 && dtype != ORR_F16 && dtype != ORR_F64)
    return refuse(out, "only f32, bf16, f16 and f64");
  accept(out, "lanes16/1");
}

}  // namespace orr_cpu
