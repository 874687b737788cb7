// SPDX-License-Identifier: Apache-2.0
//
// A row of any length that is read through shared memory: at once if it fits, else in parts. A part
// is a whole number of the blocks in which ops.h sums, so parts do not change the order of a sum.
#pragma once

#include "row_team.h"

namespace orr_cuda {

template <class T>
class RowParts {
 public:
  using A = Acc<T>;
  // Begins to copy the first part. REQUIRES: team and rows outlive this object; rows are staged.
  __device__ RowParts(const Team& team, const Rows& rows, const T* row)
      : team_(team), rows_(rows), row_(row), part_(place_of(rows, team.index, 0, row)) {
    load(0);
  }

  // The largest element, a NaN if there is one; every thread gets it.
  __device__ A max() {
    A top = A(-HUGE_VALF);
    each([&] { top = max_of_mine(team_, n_, part_, top); });
    return max_of_all(team_, top);
  }

  // The row sum of term(x) for each element x; every thread gets it.
  template <class Term>
  __device__ A sum(Term term) {
    A alone = A(0);
    each([&] {
      team_.sync();
      const auto at = [=, x = part_](int c) { return term(get(x[c])); };
      if (team_.size == 16)
        alone = block_fold<Sum, A>(0, n_, at);
      else
        sum_blocks<A>(team_, first_ / ORR_SUM_BLOCK, n_, at);
    });
    return team_.size == 16 ? alone : add_blocks<A>(team_, blocks_of(rows_.columns));
  }

  // The whole row for a third pass: its copy, or if that is of a part, the row itself.
  __device__ const T* whole() const { return rows_.part < rows_.columns ? row_ : part_; }

 private:
  // Calls f for each part when this thread has copied its share of it. The parts come upwards and
  // downwards in turn: each pass begins with the part that is in shared memory already.
  template <class F>
  __device__ void each(F f) {
    const int parts = (rows_.columns + rows_.part - 1) / rows_.part;
    for (int i = 0; i < parts; ++i) {
      const int first = (down_ ? parts - 1 - i : i) * rows_.part;
      if (first != first_) load(first);
      wait_copies();
      f();
    }
    down_ = !down_;
  }

  __device__ void load(int first) {
    const int left = rows_.columns - first;
    first_ = first, n_ = left < rows_.part ? left : rows_.part;
    team_.sync();  // all threads have read the part before
    begin_stage(team_, part_, row_ + first, n_);
  }

  const Team& team_;
  const Rows& rows_;
  const T* row_;
  T* const part_;  // in shared memory: n_ elements from element first_ on
  int first_, n_;
  bool down_ = false;
};

}  // namespace orr_cuda
