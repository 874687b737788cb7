// SPDX-License-Identifier: Apache-2.0
//
// Packing bf16 for the instruction that multiplies pairs: elements k and k+1 of a row are one element
// of 32 bits in its panel, the first in the low half. What has no partner has a zero. kc is the
// number of elements along K, of which there are half as many pairs.
#pragma once

#include "pack.h"

#ifdef __AVX512F__
namespace orr_cpu::ORR_ISA {

ORR_INLINE float one_pair(const bf16* first, const bf16* second) {
  const uint32_t bits = first->bits | uint32_t(second ? second->bits : 0) << 16;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Lane i: first[i] in the low half, second[i] in the high half.
template <class Count>
ORR_INLINE v16f pairs_of(const bf16* first, const bf16* second, Count n) {
  const v16i low = shift_right(as_int(load(first, n)), 16);
  return as_float(second ? low | as_int(load(second, n)) : low);
}

// Rows whose elements along K are neighbours, as they are: kRowStride apart. REQUIRES: kc <= 256.
inline void pack_pair_rows(const bf16* src, int64_t i_step, int64_t count, int64_t kc, float* to) {
  for (int64_t i = 0; i < count; ++i, src += i_step, to += kRowStride) {
    int64_t k = 0;
    for (; k + 32 <= kc; k += 32) store_int(to + k / 2, load_int(src + k));
    for (; k < kc; k += 2) to[k / 2] = one_pair(src + k, k + 1 < kc ? src + k + 1 : nullptr);
  }
}

// As pack_transposed.
template <int W>
ORR_INLINE void pack_pairs_transposed(const bf16* src, int64_t stride, int count, int64_t kc,
                                      float* to) {
  const bf16* row[16];
  const float* pairs[16];
  row_pointers(src, stride, count, row);
  for (int i = 0; i < 16; ++i) pairs[i] = (const float*)row[i];
  int64_t k = 0;
  for (; k + 8 <= kc; k += 8) {
    v16f column[4];
    load_columns(pairs, k / 2, column);
    for (int j = 0; j < 4; ++j) store(to + (k / 2 + j) * W, column[j]);
  }
  for (; k < kc; k += 2)
    for (int i = 0; i < (W < 16 ? W : 16); ++i)
      to[k / 2 * W + i] = one_pair(row[i] + k, k + 1 < kc ? row[i] + k + 1 : nullptr);
}

// As pack_neighbours.
template <int W>
inline void pack_pairs_neighbours(const bf16* src, int64_t k_step, int64_t count, int64_t kc,
                                  float* to, int64_t panel) {
  for (int64_t k = 0; k < kc; k += 2, src += 2 * k_step, to += W) {
    const bf16* next = k + 1 < kc ? src + k_step : nullptr;
    float* row = to;
    for (int64_t p = 0; p < count; p += W, row += panel)
      for (int64_t i = p; i < p + W && i < count; i += 16) {
        const int left = int(smaller(16, smaller(W - (i - p), count - i)));
        const bf16* second = next ? next + i : nullptr;
        const v16f x =
            count - i < 16 ? pairs_of(src + i, second, left) : pairs_of(src + i, second, Full{});
        if ((kc - k + 1) / 2 * W >= 16)
          store(row + (i - p), x);
        else
          store(row + (i - p), x, left);
      }
  }
}

// As pack_panels.
template <int W>
inline void pack_pair_panels(const bf16* src, int64_t i_step, int64_t k_step, int64_t count,
                             int64_t kc, float* to, int64_t panel) {
  if (i_step == 1 && k_step != 1)
    return pack_pairs_neighbours<W>(src, k_step, count, kc, to, panel);
  for (int64_t p = 0; p < count; p += W, to += panel)
    for (int64_t i = p; i < p + W && i < count; i += 16) {
      const int rows = int(smaller(16, smaller(W - (i - p), count - i)));
      if (k_step == 1)
        pack_pairs_transposed<W>(src + i * i_step, i_step, rows, kc, to + (i - p));
      else
        for (int64_t k = 0; k < kc; k += 2)
          for (int r = 0; r < rows; ++r) {
            const bf16* at = src + (i + r) * i_step + k * k_step;
            to[k / 2 * W + i - p + r] = one_pair(at, k + 1 < kc ? at + k_step : nullptr);
          }
    }
}

}  // namespace orr_cpu::ORR_ISA
#endif
