// SPDX-License-Identifier: Apache-2.0
//
// Describes matmuls of which an operand has more than three dims (ops.h, matmul), such as the
// windows of a convolution, for the plugin's own products (device/window_product.h).
#pragma once

#include <orrery/kernel.h>

#include "device/window_product.h"

namespace orr_cuda {

// One side of a product: `along` is the dim whose last part has stride 1. `packets`: pieces of 16
// bytes along it, and begin where the address is a multiple of 16, if x is.
struct WindowOperand {
  JoinedIndex across, along;
  bool k_along, packets;
};

// Whether an operand of the matmul is such a view. Then the product is computed where it lies.
bool reads_windows(const orr_op& op);

// y[m,n] = sum over k of a[m,k] * b[k,n].
struct WindowShape {
  explicit WindowShape(const orr_op& op);  // throws Unsupported

  int32_t dtype;
  int64_t m, n, k;
  WindowOperand a, b;
  int64_t y_row, y_node;
  bool summed;                  // K is the batch
  bool fast;                    // any order of sums is allowed, and TF32
  int64_t depth, parts, chunk;  // of a leaf; its parts, but for the last one
  int rows, columns;            // of a tile

  bool in_parts() const { return parts_ > 1; }
  uint64_t sum_bytes() const;  // of all parts' sums in f32; 0 if there is one part in all

 private:
  void cut(int64_t leaves);
  int64_t parts_ = 1;  // of all leaves
};

}  // namespace orr_cuda
