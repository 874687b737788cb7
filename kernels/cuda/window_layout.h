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
  int64_t group;  // from a group to the next
  bool k_along, packets;
};

// Whether a matmul is a product of the plugin's own: an operand is such a view; or K is the batch
// and long, there are few rows or columns, and rows are no multiple of 16 bytes. (For [64, 262144]'
// times [262144, 27] cuBLASLt chose an algorithm that took 45 ms on an H100.) By the shape of a
// leaf alone.
bool is_window_product(const orr_op& op);

// y[g,m,n] = sum over k of a[g,m,k] * b[g,k,n].
struct WindowShape {
  explicit WindowShape(const orr_op& op);  // throws Unsupported

  int32_t dtype;
  int64_t groups, m, n, k;
  WindowOperand a, b;
  int64_t y_row, y_group, y_node;
  bool summed;                  // K is the batch
  bool fast;                    // any order of sums is allowed, and TF32
  int64_t depth, parts, chunk;  // of a leaf; its parts, but for the last one
  int rows, columns;            // of a tile

  bool in_parts() const { return parts_ > 1; }
  uint64_t sum_bytes() const;  // of all parts' sums in f32; 0 if there is one part in all

 private:
  void cut(int64_t leaves);
  int64_t parts_ = 1;  // of all leaves, in a group
};

}  // namespace orr_cuda
