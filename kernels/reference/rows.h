// SPDX-License-Identifier: Apache-2.0
//
// What the ops on rows [R,C] share.
#pragma once

#include "op.h"

namespace reference {

// The largest element; a NaN once seen stays. -infinity for an empty row.
template <class T>
Acc<T> row_max(const T* x, int64_t n) {
  Acc<T> top = -HUGE_VALF;
  for (int64_t c = 0; c < n && top == top; ++c)
    if (!(get(x[c]) <= top)) top = get(x[c]);
  return top;
}

// `t` has the shape and dtype of the first input.
inline void require_same(const orr_op& op, const orr_tensor& t, const char* name) {
  const orr_tensor& x = op.in[0];
  require_dtype(t, x.dtype, name);
  require_shape(t, {x.dims[0], x.dims[1]}, name);
}

}  // namespace reference
