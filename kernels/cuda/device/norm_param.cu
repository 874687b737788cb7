// SPDX-License-Identifier: Apache-2.0
//
// The first stage of norm_param_grad: both column sums in one pass over dy and x.
#include "fold_block.h"

namespace orr_cuda {
namespace {

template <class T, int width>
__device__ void sum_columns(const NormParamArgs& a) {
  using A = Acc<T>;
  const FoldPlace<kFoldColumns, width> place(a.entries, a.columns);
  const ColumnRows rows(place, a.length);
  const int64_t row = place.segment * a.length, at = row * a.columns + place.column;
  const T *dy = static_cast<const T*>(a.dy) + at, *x = static_cast<const T*>(a.x) + at;
  const A *mean = static_cast<const A*>(a.mean), *rstd = static_cast<const A*>(a.rstd) + row;
  A dw[width] = {}, db[width] = {};
  if (place.column < a.columns) {
#pragma unroll 4
    for (int64_t r = rows.first; r < rows.end; ++r) {
      const auto ds = *reinterpret_cast<const Packet<T, width>*>(dy + r * a.columns);
      const auto vs = *reinterpret_cast<const Packet<T, width>*>(x + r * a.columns);
      const A middle = mean ? mean[row + r] : A(0), scale = rstd[r];
      for (int j = 0; j < width; ++j) {
        const A d = get(ds.v[j]);
        dw[j] = dw[j] + d * (get(vs.v[j]) - middle) * scale;
        db[j] = db[j] + d;
      }
    }
  }
  A* const part = fold_memory<A, kFoldThreads * packet_columns<T>>();
  fold_rows<Sum>(place, part, dw, rows.count);
  if (mean) fold_rows<Sum>(place, part, db, rows.count);
  if (place.y != 0 || place.column >= a.columns) return;
  const int64_t to = (place.segment * a.entries + place.entry) * a.columns + place.column;
  for (int j = 0; j < width; ++j) {
    store_fold<T>(a.out, 0, to + j, dw[j]);
    if (mean) store_fold<T>(a.out, 1, to + j, db[j]);
  }
}

template <class T>
__device__ void norm_param_grad(const NormParamArgs& a) {
  if (a.packets) return sum_columns<T, packet_columns<T>>(a);
  sum_columns<T, 1>(a);
}

}  // namespace

ORR_REAL_KERNELS(norm_param_grad, kFoldThreads, NormParamArgs)

}  // namespace orr_cuda
