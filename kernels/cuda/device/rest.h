// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace orr_cuda {

// An element lies at row * rows + column * columns.
struct RestMatrix {
  void* at;
  int64_t rows, columns;
};

// y[m,n] = sum over k of a[m,k] * b[k,n], in f32. `team` threads share a sum: 1 or a warp.
struct RestArgs {
  RestMatrix a, b, y;
  int64_t m, n, k;
  int32_t team;
};

enum { kRestThreads = 256 };

}  // namespace orr_cuda
