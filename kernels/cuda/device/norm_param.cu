// SPDX-License-Identifier: Apache-2.0
//
// First stage of norm_param_grad: both column sums in one pass over dy and x.
#include "fold_block.h"

#include <orrery/ops.h>

namespace orr_cuda {
namespace {

template <class T>
__device__ void norm_param_grad(const NormParamArgs& a) {
  using A = Acc<T>;
  const FoldPlace place(a.entries, a.columns);
  const int64_t blocks = (a.length + ORR_SUM_ROWS - 1) / ORR_SUM_ROWS;
  const int64_t left = blocks - place.entry * kFoldRows;
  const int64_t first = (place.entry * kFoldRows + place.y) * ORR_SUM_ROWS;
  const int64_t end = first + ORR_SUM_ROWS < a.length ? first + ORR_SUM_ROWS : a.length;
  const int64_t row = place.segment * a.length, at = row * a.columns + place.column;
  const T *dy = static_cast<const T*>(a.dy) + at, *x = static_cast<const T*>(a.x) + at;
  const A *mean = static_cast<const A*>(a.mean), *rstd = static_cast<const A*>(a.rstd) + row;
  A dw = 0, db = 0;
  if (place.column < a.columns) {
#pragma unroll 4
    for (int64_t r = first; r < end; ++r) {
      const A d = get(dy[r * a.columns]), v = get(x[r * a.columns]);
      dw = dw + d * (mean ? v - mean[row + r] : v) * rstd[r];
      db = db + d;
    }
  }
  const int count = left < kFoldRows ? int(left) : kFoldRows;
  dw = fold_rows<Sum>(place, dw, count);
  if (mean) db = fold_rows<Sum>(place, db, count);
  if (place.y != 0 || place.column >= a.columns) return;
  const int64_t to = (place.segment * a.entries + place.entry) * a.columns + place.column;
  store_fold<T>(a.out, 0, to, dw);
  if (mean) store_fold<T>(a.out, 1, to, db);
}

}  // namespace

ORR_REAL_KERNELS(norm_param_grad, kFoldThreads, NormParamArgs)

}  // namespace orr_cuda
