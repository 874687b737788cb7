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
  // REQUIRES: team and rows outlive this object; the rows have a slot (rows.h).
  __device__ RowParts(const Team& team, const Rows& rows, const T* row)
      : team_(team), rows_(rows), row_(row) {}

  // The largest element, a NaN if there is one; every thread gets it.
  __device__ A max() {
    A top = A(-HUGE_VALF);
    each([&](const T* x, int, int n) { top = max_of_mine(team_, n, x, top); });
    return max_of_all(team_, top);
  }

  // The row sum of term(x) for each element x; every thread gets it.
  template <class Term>
  __device__ A sum(Term term) {
    A alone = A(0);
    each([&](const T* x, int first, int n) {
      const auto at = [=](int c) { return term(get(x[c])); };
      if (team_.size == 16)
        alone = block_fold<Sum, A>(0, n, at);
      else
        sum_blocks<A>(team_, first / ORR_SUM_BLOCK, n, at);
    });
    return team_.size == 16 ? alone : add_blocks<A>(team_, blocks_of(rows_.columns));
  }

 private:
  // Calls at(x, first, n) for each part, the elements [first, first + n) of the row. The parts come
  // upwards and downwards in turn: each pass begins with the part that is in shared memory already.
  template <class At>
  __device__ void each(At at) {
    const int parts = (rows_.columns + rows_.part - 1) / rows_.part;
    for (int i = 0; i < parts; ++i) {
      const int first = (down_ ? parts - 1 - i : i) * rows_.part, left = rows_.columns - first;
      const int n = left < rows_.part ? left : rows_.part;
      if (first != loaded_) load(first, n);
      at(part_, first, n);
    }
    down_ = !down_;
  }

  __device__ void load(int first, int n) {
    if (loaded_ >= 0) team_.sync();  // all threads have read the part before
    part_ = stage(team_, rows_, 0, row_ + first, n);
    loaded_ = first;
    team_.sync();
  }

  const Team& team_;
  const Rows& rows_;
  const T* row_;
  const T* part_ = nullptr;
  int loaded_ = -1;  // the first element of the part in shared memory
  bool down_ = false;
};

}  // namespace orr_cuda
