// SPDX-License-Identifier: Apache-2.0
//
// Packs a piece of an operand into a panel: element (i, k) goes to panel[k*W + i], so that the
// micro-kernel reads consecutive memory. 16-bit elements are converted to float.
#pragma once

#include "matmul_micro.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {

ORR_INLINE auto quad(const bf16* p) { return quad_bf16(&p->bits); }
ORR_INLINE auto quad(const f16* p) { return quad_f16(&p->bits); }
ORR_INLINE void copy_octet(float* to, const bf16* p) { copy_octet_bf16(to, &p->bits); }
ORR_INLINE void copy_octet(float* to, const f16* p) { copy_octet_f16(to, &p->bits); }

// Four consecutive elements of rows 0, 4, 8, 12 of the row pointers, side by side.
template <class S>
ORR_INLINE v16f load_quads(const S* const* row, int64_t k) {
  return beside(quad(row[0] + k), quad(row[4] + k), quad(row[8] + k), quad(row[12] + k));
}

// column[j] = element k+j of the sixteen rows.
template <class S>
ORR_INLINE void load_columns(const S* const* row, int64_t k, v16f column[4]) {
  v16f x0 = load_quads(row, k), x1 = load_quads(row + 1, k);
  v16f x2 = load_quads(row + 2, k), x3 = load_quads(row + 3, k);
  v16f a = low_of(x0, x1), b = high_of(x0, x1), c = low_of(x2, x3), d = high_of(x2, x3);
  column[0] = low_of_pairs(a, c), column[1] = high_of_pairs(a, c);
  column[2] = low_of_pairs(b, d), column[3] = high_of_pairs(b, d);
}

// Sixteen row pointers; rows from `count` on repeat the last, so that nothing else is read.
template <class S>
ORR_INLINE void row_pointers(const S* src, int64_t stride, int count, const S* row[16]) {
  for (int i = 0; i < 16; ++i) row[i] = src + (i < count ? i : count - 1) * stride;
}

// Packs sixteen rows whose elements along K are neighbours. Lanes from `count` on get copies.
template <int W, class S>
ORR_INLINE void pack_transposed(const S* src, int64_t stride, int count, int64_t kc, float* to) {
  const S* row[16];
  row_pointers(src, stride, count, row);
  int64_t k = 0;
  for (; k + 4 <= kc; k += 4) {
    v16f column[4];
    load_columns(row, k, column);
    for (int j = 0; j < 4; ++j) store(to + (k + j) * W, column[j]);
  }
  for (; k < kc; ++k)
    for (int i = 0; i < (W < 16 ? W : 16); ++i) to[k * W + i] = load_one(row[i] + k);
}

// Packs rows that are neighbours in memory: all panels for one k, then for the next. A row of a
// panel is stored as whole vectors, and the next row overwrites what is too much; the last row is
// stored exactly.
template <int W, class S>
ORR_INLINE void pack_neighbours(const S* src, int64_t k_step, int64_t count, int64_t kc, float* to,
                                int64_t panel) {
  for (int64_t k = 0; k < kc; ++k, src += k_step) {
    float* row = to + k * W;
    for (int64_t p = 0; p < count; p += W, row += panel)
      for (int64_t i = p; i < p + W && i < count; i += 16) {
        int64_t left = smaller(16, smaller(W - (i - p), count - i));
        v16f x = count - i < 16 ? load(src + i, int(left)) : load(src + i, Full{});
        if ((kc - k) * W >= 16)
          store(row + (i - p), x);
        else
          store(row + (i - p), x, int(left));
      }
  }
}

// The same for narrow panels, whose rows are stored as eight elements if another row follows.
template <int W, class S>
ORR_INLINE void pack_narrow(const S* src, int64_t k_step, int64_t count, int64_t kc, float* to,
                            int64_t panel) {
  for (int64_t k = 0; k < kc; ++k, src += k_step, to += W) {
    float* row = to;
    for (int64_t p = 0; p < count; p += W, row += panel)
      if (p + 8 <= count && k + 1 < kc)
        copy_octet(row, src + p);
      else
        for (int64_t i = p; i < p + W && i < count; ++i) row[i - p] = load_one(src + i);
  }
}

// Packs rows whose elements along K are neighbours as rows, kRowStride apart. REQUIRES: kc <= 256.
template <class S>
inline void pack_rows(const S* src, int64_t i_step, int64_t count, int64_t kc, Scalar<S>* to) {
  for (int64_t i = 0; i < count; ++i, src += i_step, to += kRowStride) {
    int64_t k = 0;
    for (; k + 16 <= kc; k += 16) store(to + k, load(src + k, Full{}), Full{});
    for (; k < kc; ++k) to[k] = load_one(src + k);
  }
}

// Packs `count` rows (stride i_step) over kc of K (stride k_step) into panels of W rows, `panel`
// elements apart. It is fast only if one stride is 1. It may write up to 16 floats behind the end.
template <int W, class S>
inline void pack_panels(const S* src, int64_t i_step, int64_t k_step, int64_t count, int64_t kc,
                        float* to, int64_t panel) {
  if (i_step == 1 && k_step != 1) {
    if constexpr (W < 8) return pack_narrow<W>(src, k_step, count, kc, to, panel);
    return pack_neighbours<W>(src, k_step, count, kc, to, panel);
  }
  for (int64_t p = 0; p < count; p += W, to += panel)
    for (int64_t i = p; i < p + W && i < count; i += 16) {
      int rows = int(smaller(16, smaller(W - (i - p), count - i)));
      if (k_step == 1)
        pack_transposed<W>(src + i * i_step, i_step, rows, kc, to + (i - p));
      else
        for (int64_t k = 0; k < kc; ++k)
          for (int r = 0; r < rows; ++r)
            to[k * W + i - p + r] = load_one(src + (i + r) * i_step + k * k_step);
    }
}

template <int W>
inline void pack_panels(const double* src, int64_t i_step, int64_t k_step, int64_t count,
                        int64_t kc, double* to, int64_t panel) {
  for (int64_t p = 0; p < count; p += W, to += panel)
    for (int64_t k = 0; k < kc; ++k)
      for (int64_t i = p; i < p + W && i < count; ++i)
        to[k * W + i - p] = src[i * i_step + k * k_step];
}

}  // namespace orr_cpu::ORR_ISA
