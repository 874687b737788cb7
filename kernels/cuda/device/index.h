// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "../late_word.h"

namespace orr_cuda {

enum { kIndexThreads = 256 };

// y[n, units] = table[index[n], units], in units of 1 to 16 bytes.
struct GatherArgs {
  const void *table, *index;
  void* y;
  int64_t n, units, rows;
  LateArgs late;
  bool wide_index;  // i64
};

// In units of 1 to 16 bytes: slice_at reads part[outer, length] from whole[outer, dim] at `at`;
// update_slice writes part to y there. The other units of y are copied from `whole`, unless y is
// `whole`.
struct SliceArgs {
  const void *whole, *part;
  void* y;
  const int64_t* at;
  int64_t outer, dim, length, units;  // units: per index of dim
  LateArgs late;
};

struct IotaArgs {
  void* y;
  int64_t n, start;
};

}  // namespace orr_cuda
