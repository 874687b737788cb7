// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace orr_cuda {

// An operand [B,H,L,D] whose last stride is 1. Strides are in elements.
struct Heads {
  void* data;
  int64_t batch, head, row;
};

// attention: q, k, v -> o, lse. attention_grad: do, q, k, v, o, lse -> dq, dk, dv. The gradient
// first computes delta, the row sums of do * o. lse and delta are [B,H,T]. A bias and its gradient
// are [B,H,T,S], null if there is none.
struct AttentionArgs {
  Heads q, k, v, bias, o, d_o, dq, dk, dv, d_bias;
  void *lse, *delta;
  const int64_t *seed, *step, *base;  // null: no dropout
  int64_t first_row;                  // the row of the first head in the numbering of weights
  int32_t head_total;
  uint32_t rng_id;
  float dropout;
  double keep;  // the factor of the weights that are kept
  int32_t heads, queries, keys, depth;
  double scale;
  bool causal;
  bool wide_lse;  // f64
  bool packets;   // rows of 16 bits that are all aligned to 16 bytes
};

// Plain kernels work on tiles of 32 queries by 32 keys, or 16 by 16 for deep heads. Kernels on
// tensor cores have kFlashRows queries, or keys, in a block; others go by in steps of flash_step.
// These sizes determine the order of sums.
enum { kPlainThreads = 128 };
enum { kFlashRows = 64, kFlashKeys = 64, kFlashThreads = 128 };
// In the gradient, for heads of this many elements: fewer where sums need the registers.
constexpr int flash_step(int width) { return width > 64 ? 32 : 64; }

}  // namespace orr_cuda
