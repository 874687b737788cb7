// SPDX-License-Identifier: Apache-2.0
//
// Rows that belong to matrices by an index, sorted by matrix.
#pragma once

#include "grouped_plan.h"
#include "integers.h"

namespace orr_cpu::ORR_ISA {

// The rows of an op, whose input 2 says of each which matrix it has; -1: none.
struct GroupedRows {
  GroupedRows(const char* kind_, const orr_op& op, int64_t matrices_)
      : kind(kind_), get(op, 2), n(op.in[2].dims[0]), matrices(matrices_) {}
  const char* kind;
  Integers get;
  int64_t n, matrices;
};

// order[start[e] .. start[e + 1]) are the rows of matrix e, ascending. `scratch` is as long as
// grouped_plan.cpp says; `behind` is what is left of it.
struct RowSort {
  RowSort(const GroupedRows& rows, const void* index, char* scratch)
      : rows_(rows),
        index_(index),
        start((int64_t*)((uintptr_t(scratch) + 63) & ~uintptr_t(63))),
        order(start + rows.matrices + 1),
        behind((char*)start +
               grouped_bytes((rows.matrices + 1 + rows.n) * int64_t(sizeof(int64_t)))) {
    check();
    __builtin_memset(start, 0, size_t(rows.matrices + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < rows.n; ++i)
      if (const int64_t e = rows.get(index, i); e >= 0) ++start[e];
    int64_t sum = 0;
    for (int64_t e = 0; e <= rows.matrices; ++e) start[e] = sum += start[e];
    for (int64_t i = rows.n - 1; i >= 0; --i)
      if (const int64_t e = rows.get(index, i); e >= 0) order[--start[e]] = i;
  }

  void check() const {
    for (int64_t i = 0; i < rows_.n; ++i) {
      const int64_t e = rows_.get(index_, i);
      if (e < -1 || e >= rows_.matrices)
        fail(ORR_INVALID,
             "%s: index %lld in row %lld is outside the %lld matrices (0..%lld, or -1 for none)",
             rows_.kind, (long long)e, (long long)i, (long long)rows_.matrices,
             (long long)(rows_.matrices - 1));
    }
  }

  // Copies the rows of x, in their order, side by side.
  void collect(const char* x, int64_t bytes, char* to) const {
    parallel_ranges(start[rows_.matrices], grain(bytes), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        __builtin_memcpy(to + i * bytes, x + order[i] * bytes, size_t(bytes));
    });
  }

  // Copies them back to where they belong in y; rows without a matrix are 0.
  void spread(const char* from, int64_t bytes, char* y) const {
    const int64_t n = start[rows_.matrices];
    if (n < rows_.n)
      for (int64_t i = 0; i < rows_.n; ++i)
        if (rows_.get(index_, i) < 0) __builtin_memset(y + i * bytes, 0, size_t(bytes));
    parallel_ranges(n, grain(bytes), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        __builtin_memcpy(y + order[i] * bytes, from + i * bytes, size_t(bytes));
    });
  }

  static int64_t grain(int64_t bytes) { return larger(1, 65536 / larger(1, bytes)); }

  const GroupedRows& rows_;
  const void* index_;
  int64_t *start, *order;
  char* behind;
};

}  // namespace orr_cpu::ORR_ISA
