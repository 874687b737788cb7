// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy and its gradient, one team for each row. The logits are read once; in forward twice
// if a row does not fit into shared memory, because its maximum must be known before its sum. The
// gradient may overwrite them; with the loss it reads them again, while they are in the L2 cache.
#include "cross_entropy.h"
#include "row_parts.h"

namespace orr_cuda {
namespace {

// The row's label; where it is no class it is reported, and 0. Rows of weight 0 have none.
__device__ int checked_label(const Team& team, const CrossEntropyArgs& a, bool counts) {
  if (!counts) return 0;
  const int64_t label = index_at(a.labels, a.wide_labels, team.row);
  if (label >= 0 && label < a.rows.columns) return int(label);
  if (team.rank == 0) report_late(a.late, team.row, label);
  return 0;
}

// The row's gradient. REQUIRES: no thread of the team has still to read what it overwrites.
template <class T>
__device__ void write_slope(const Team& team, const CrossEntropyArgs& a, Acc<T> w, Acc<T> lse,
                            int label) {
  using A = Acc<T>;
  const A scale = static_cast<const A*>(a.dloss)[team.row] * w;
  map_row(
      team, a.rows.columns, static_cast<T*>(a.dlogits) + team.row * a.step_out,
      [=](int c, A x) { return w == A(0) ? A(0) : scale * (exp_for<T>(x - lse) - A(c == label)); },
      static_cast<const T*>(a.logits) + team.row * a.step);
}

template <class T>
__device__ void cross_entropy(const CrossEntropyArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const T* x = static_cast<const T*>(a.logits) + team.row * a.step;
  const A w = static_cast<const A*>(a.w)[team.row];
  const int label = checked_label(team, a, w != A(0));
  const A hit = get(x[label]);
  RowParts<T> row(team, a.rows, x);
  const A top = row.max();
  const A lse = top + log(row.sum([=](A each) { return exp_for<T>(each - top); }));
  if (a.dlogits) {
    team.sync();
    write_slope<T>(team, a, w, lse, label);
  }
  if (team.rank != 0) return;
  static_cast<A*>(a.loss)[team.row] = w == A(0) ? A(0) : w * (lse - hit);
  static_cast<A*>(a.lse)[team.row] = lse;
}

template <class T>
__device__ void cross_entropy_grad(const CrossEntropyArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const A w = static_cast<const A*>(a.w)[team.row], lse = static_cast<const A*>(a.lse)[team.row];
  write_slope<T>(team, a, w, lse, checked_label(team, a, w != A(0)));
}

}  // namespace

ORR_REAL_KERNELS(cross_entropy, kRowThreads, CrossEntropyArgs)
ORR_REAL_KERNELS(cross_entropy_grad, kRowThreads, CrossEntropyArgs)

}  // namespace orr_cuda
