// SPDX-License-Identifier: Apache-2.0
//
// The first stage of norm_param_grad: both column sums in one pass over dy and x.
#include "fold_block.h"

namespace orr_cuda {
namespace {

template <class T>
__device__ void norm_param_grad(const NormParamArgs& a) {
  using A = Acc<T>;
  const FoldPlace place(a.entries, a.columns);
  const ColumnRows rows(place, a.length);
  const int64_t row = place.segment * a.length, at = row * a.columns + place.column;
  const T *dy = static_cast<const T*>(a.dy) + at, *x = static_cast<const T*>(a.x) + at;
  const A *mean = static_cast<const A*>(a.mean), *rstd = static_cast<const A*>(a.rstd) + row;
  A dw = 0, db = 0;
  if (place.column < a.columns) {
#pragma unroll 4
    for (int64_t r = rows.first; r < rows.end; ++r) {
      const A d = get(dy[r * a.columns]), v = get(x[r * a.columns]);
      dw = dw + d * (mean ? v - mean[row + r] : v) * rstd[r];
      db = db + d;
    }
  }
  dw = fold_rows<Sum>(place, dw, rows.count);
  if (mean) db = fold_rows<Sum>(place, db, rows.count);
  if (place.y != 0 || place.column >= a.columns) return;
  const int64_t to = (place.segment * a.entries + place.entry) * a.columns + place.column;
  store_fold<T>(a.out, 0, to, dw);
  if (mean) store_fold<T>(a.out, 1, to, db);
}

}  // namespace

ORR_REAL_KERNELS(norm_param_grad, kFoldThreads, NormParamArgs)

}  // namespace orr_cuda
