// SPDX-License-Identifier: Apache-2.0
//
// gather_matmul and scatter_matmul: products of the rows of each matrix, which are read where they
// lie through the order that scatter_sort.cu has made.
#pragma once

#include <stdint.h>

#include "fold.h"

namespace orr_cuda {

enum { kGroupedThreads = 256 };  // of what is not a product of tiles

// Rows of an operand, `row` elements apart; with `packets` 16 bytes of one may be read at once.
struct GroupedOperand {
  const void* x;
  int64_t row;
  int32_t packets;
};

// The rows order[start[e] .. start[e + 1]) are those of matrix e.
struct GroupedRowsArgs {
  const int32_t *start, *order;
  int32_t matrices, rows;  // rows of all, with those that have no matrix
};

// y[rows, n]: the rows of a, `depth` long, times matrix e of b, which lies e * `matrix` elements
// behind the first.
struct GatherProductArgs {
  GroupedRowsArgs by;
  GroupedOperand a, b;
  int64_t matrix;
  void* y;
  int32_t y_packets;
  int32_t n, depth, tiles_n;
  int64_t b_column;  // in f64: from a column of b to the next
};

// y[matrices, m, n]: of each matrix the sum over its rows of a's times b's. With `sums` the leaves
// of `leaf_rows` rows are summed alone, there, [leaves, matrices, m, n] in f32. In f64 the nodes
// are made at once, [nodes, matrices, m, n].
struct ScatterProductArgs {
  GroupedRowsArgs by;
  GroupedOperand a, b;
  void* y;
  float* sums;
  int32_t y_packets;
  int32_t m, n, tiles_n, leaf_rows;
  int32_t nodes;
  LeafNode node[kMaxNodes];
};

// Rows of y, of `bytes` each, that have no matrix become 0.
struct GatherNoneArgs {
  const void* index;
  bool wide_index;
  void* y;
  int64_t rows, bytes;
};

}  // namespace orr_cuda
