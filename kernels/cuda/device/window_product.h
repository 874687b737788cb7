// SPDX-License-Identifier: Apache-2.0
//
// A matrix product whose operands are views of tensors with more dims than two, as the windows of a
// convolution are: y[g,m,n] = sum over k of a[g,m,k] * b[g,k,n]. The second dim of the grid is g.
#pragma once

#include <stdint.h>

#include "fold.h"

namespace orr_cuda {

enum { kProductThreads = 256, kProductStages = 3 };
enum { kJoinedDims = 6 };

// For quotients of numbers below 2^31.
struct Divisor {
  uint32_t by, factor, shift;
};

// One dim of a matrix that is made of several dims of a tensor, the last one fastest.
struct JoinedIndex {
  int32_t count;  // 1 or more
  Divisor dims[kJoinedDims];
  int32_t strides[kJoinedDims];
};

// `along` is the dim whose last part has stride 1, `across` the other one; which of them is K, the
// name of the function says.
struct ProductOperand {
  const void* x;
  JoinedIndex across, along;
  int64_t group;    // elements from a group to the next
  int32_t packets;  // 16 bytes along it may be read at once
};

// K is cut into `leaves` of `depth`, and each of these into `parts` of `chunk`, the last one
// shorter. With `sums` each part is stored there alone, [groups, leaves, parts, m, n] in f32; else
// there is one leaf of one part.
struct WindowProductArgs {
  ProductOperand a, b;
  void* y;
  const void* bias;  // of each column, added to the rounded result; null: none
  float* sums;
  int64_t y_row, y_group, bias_group;
  int32_t y_packets;  // rows of y may be written 16 bytes at once
  int32_t m, n, depth, parts, chunk;
  int32_t tiles_n, tiles;
};

// Adds what WindowProductArgs.sums has, and overwrites it: the parts of each leaf, and the leaves
// of each node; y has `nodes` matrices, `y_node` elements apart.
struct WindowSumArgs {
  float* sums;
  void* y;
  int64_t elements, y_row, y_group, y_node;  // of a matrix
  int64_t group;                             // of the sums of a group
  int32_t n, parts, nodes;
  LeafNode node[kMaxNodes];
};

}  // namespace orr_cuda
