// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy and its gradient, one team for each row. The logits are read once, in forward
// through shared memory. A row that does not fit into it is read in parts, and three times: for the
// maximum, the sum and the gradient. The gradient may overwrite the logits.
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

// What the team's row has besides the logits.
template <class T>
struct Target {
  using A = Acc<T>;
  A w, scale;  // of the loss, and of the gradient
  int label;
  A hit;  // the logit of the label

  __device__ Target(const Team& team, const CrossEntropyArgs& a, const T* x)
      : w(static_cast<const A*>(a.w)[team.row]),
        scale(a.dloss ? static_cast<const A*>(a.dloss)[team.row] * w : A(0)),
        label(checked_label(team, a, w != A(0))),
        hit(get(x[label])) {}
};

// The gradient of the row x.
template <class T>
__device__ void write_slope(const Team& team, const CrossEntropyArgs& a, const T* x,
                            const Target<T>& t, Acc<T> lse) {
  using A = Acc<T>;
  const int n = a.rows.columns;
  T* const to = static_cast<T*>(a.dlogits) + team.row * a.step_out;
  team.sync();  // all threads have read what is overwritten
  if (t.w == A(0))
    return map_row(
        team, n, to, [](int, A) { return A(0); }, x);
  const A scale = t.scale;
  map_row(
      team, n, to, [=](int, A each) { return scale * exp_for<T>(each - lse); }, x);
  team.sync();
  if (team.rank == 0) to[t.label] = rounded<T>(scale * (exp_for<T>(t.hit - lse) - A(1)));
}

template <class T>
__device__ void cross_entropy(const CrossEntropyArgs& a) {
  using A = Acc<T>;
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const T* x = static_cast<const T*>(a.logits) + team.row * a.step;
  RowParts<T> row(team, a.rows, x);
  const Target<T> t(team, a, x);
  const A top = row.max();
  const A lse = top + log(row.sum([=](A each) { return exp_for<T>(each - top); }));
  if (a.dlogits) write_slope<T>(team, a, row.whole(), t, lse);
  if (team.rank != 0) return;
  static_cast<A*>(a.loss)[team.row] = t.w == A(0) ? A(0) : t.w * (lse - t.hit);
  static_cast<A*>(a.lse)[team.row] = lse;
}

template <class T>
__device__ void cross_entropy_grad(const CrossEntropyArgs& a) {
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const T* x = static_cast<const T*>(a.logits) + team.row * a.step;
  write_slope<T>(team, a, x, {team, a, x}, static_cast<const Acc<T>*>(a.lse)[team.row]);
}

}  // namespace

ORR_REAL_KERNELS(cross_entropy, kRowThreads, CrossEntropyArgs)
ORR_REAL_KERNELS(cross_entropy_grad, kRowThreads, CrossEntropyArgs)

}  // namespace orr_cuda
