// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace orr_cuda {

// An operand [B,H,L,D] whose last stride is 1. Strides are in elements. The heads of all samples
// are numbered one after another.
struct Heads {
  void* data;
  int64_t batch, head, row;
  int32_t heads;  // of a sample
};

// attention: q, k, v -> o, lse. attention_grad: do, q, k, v, o, lse -> dq, dk, dv. The gradient
// first computes delta, the row sums of do * o. lse and delta are [B,H,T]. A bias and its gradient
// are [B,H,T,S], null if there is none; `seen` says by tiles where the bias lets something be seen.
// q has `readers` heads for each of k and v. A block works on one head of queries; where its rows
// are keys, on one of keys, and on its readers one after another.
struct AttentionArgs {
  Heads q, k, v, bias, o, d_o, dq, dk, dv, d_bias, seen;
  void *lse, *delta;
  const int64_t *seed, *step, *base;  // null: no dropout
  int64_t first_row;                  // the row of the first head in the numbering of weights
  int32_t head_total;
  uint32_t rng_id;
  float dropout;
  double keep;                                   // the factor of the weights that are kept
  int32_t heads, readers, queries, keys, depth;  // readers: heads of queries to one of keys
  double scale;
  // Query t sees the keys [t + first, t + last), as far as there are such keys.
  int32_t first, last;
  bool window;    // whether keys before the first are hidden from a query
  bool wide_lse;  // f64
  bool packets;   // rows of 16 bits that are all aligned to 16 bytes
  // Rows of the bias are whole packets of 16 bytes; rows of its gradient are whole words of 4.
  bool bias_packets, bias_words;
};

// flash_seen: what a bias [B,H,T,S] lets be seen, a byte for each tile of it. Dims that the bias
// has one of for all are 1 here.
struct SeenArgs {
  Heads bias;
  unsigned char* to;  // [B,H,tiles of queries, tiles of keys]
  int32_t heads, queries, keys;
};
// A tile of which nothing is seen, one that must be looked at, and one whose bias is all 0.
enum { kHidden, kBiased, kOpen };
enum { kSeenRows = 64, kSeenTiles = 4, kSeenThreads = 32 * kSeenTiles };  // tiles of a block

// Plain kernels work on tiles of 32 queries by 32 keys, or 16 by 16 for deep heads. Kernels on
// tensor cores have kFlashRows queries, or keys, in a block; others go by in steps, fewer at a time
// where sums need the registers. These sizes determine the order of sums.
enum { kPlainThreads = 128 };
enum { kFlashRows = 64, kFlashThreads = 128 };
// For heads of `width` elements: keys that go by in attention, and rows in its gradient.
constexpr int flash_keys(int width) { return width > 128 ? 32 : 64; }
constexpr int flash_step(int width) { return width > 64 ? 32 : 64; }
// In how many parts the columns of a gradient are summed, each by a block: where registers do not
// hold the sums of all. Gradients of keys and values are two.
constexpr int flash_parts(int width, bool biased, bool of_keys) {
  return width > 128 && (biased || of_keys) ? 2 : 1;
}
// Whether the gradient of keys and values goes from reader to reader: not where no register is left
// for that. The op is not taken with groups then.
constexpr bool flash_groups(int width, bool biased) { return width <= 128 || !biased; }

}  // namespace orr_cuda
