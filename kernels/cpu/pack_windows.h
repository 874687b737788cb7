// SPDX-License-Identifier: Apache-2.0
//
// Packs an operand that is runs of neighbours (matmul_plan.h, MatmulWindows), so that the windows
// of a convolution are read where they overlap.
#pragma once

#include "matmul_plan.h"
#include "pack.h"

namespace orr_cpu::ORR_ISA {

ORR_INLINE int64_t offset_of(const JoinedDim& d, int64_t i) {
  int64_t offset = 0;
  for (int32_t n = d.count; n-- > 0; i /= d.dims[n]) offset += i % d.dims[n] * d.strides[n];
  return offset;
}

// The offsets of consecutive indices.
class Offsets {
 public:
  ORR_INLINE Offsets(const JoinedDim& dim, int64_t first) : dim_(dim), next_(first) { find(); }
  ORR_INLINE int64_t next() {
    const int64_t offset = offset_;
    ++next_;
    if (--left_ > 0)
      offset_ += step_;
    else
      find();
    return offset;
  }

 private:
  ORR_INLINE void find() {
    const int32_t last = dim_.count - 1;
    offset_ = offset_of(dim_, next_);
    left_ = last < 0 ? 1 : dim_.dims[last] - next_ % dim_.dims[last];
    step_ = last < 0 ? 0 : dim_.strides[last];
  }
  const JoinedDim& dim_;
  int64_t next_, offset_, left_, step_;
};

// A part of a run: `n` neighbours from `from` on, which is element `at` of what is packed.
struct RunPart {
  int64_t from, at, n;
};

// Cuts elements [first, first + count) of each row where a run ends, and where a multiple of `most`
// elements ends; returns how many parts there are. REQUIRES: room for `count`.
ORR_INLINE int64_t parts_of_runs(const MatmulWindows& w, int64_t first, int64_t count, int64_t most,
                                 RunPart* parts) {
  int64_t found = 0;
  for (int64_t at = 0; at < count; ++found) {
    const int64_t run = (first + at) / w.run, within = (first + at) % w.run;
    int64_t n = smaller(w.run - within, count - at);
    if (most) n = smaller(smaller(n, 16), most - at % most);
    parts[found] = {offset_of(w.runs, run) + within, at, n};
    at += n;
  }
  return found;
}

// As pack_rows: the `parts` of each of the rows from `first` on.
template <class S>
inline void pack_window_rows(const S* src, const JoinedDim& apart, int64_t first, int64_t count,
                             const RunPart* parts, int64_t n, Scalar<S>* to) {
  Offsets rows(apart, first);
  for (int64_t i = 0; i < count; ++i, to += kRowStride) {
    const S* row = src + rows.next();
    for (const RunPart* part = parts; part < parts + n; ++part) {
      // What is too much is overwritten by the next part, or lies between two rows.
      int64_t k = 0;
      for (; k + 16 <= part->n; k += 16)
        store(to + part->at + k, load(row + part->from + k, Full{}), Full{});
      if (k < part->n)
        store(to + part->at + k, load(row + part->from + k, int(part->n - k)), Full{});
    }
  }
}

// Rows [0, kc) at `row` of one panel of W columns, whose parts these are. What follows the last
// row must stay, if it `ends` the panel.
template <int W, class S>
ORR_INLINE void pack_window_panel(const S* const* row, int64_t kc, const RunPart* parts, int64_t n,
                                  bool ends, float* to) {
  if (W == 32 && n == 2 && parts[0].n == 16 && parts[1].n == 16) {
    const int64_t left = parts[0].from, right = parts[1].from;
    for (int64_t k = 0; k < kc; ++k) {
      store(to + k * W, load(row[k] + left, Full{}));
      store(to + k * W + 16, load(row[k] + right, Full{}));
    }
    return;
  }
  for (int64_t k = 0; k < kc; ++k)
    for (const RunPart* part = parts; part < parts + n; ++part) {
      // A whole vector is stored where the next row of the panel overwrites what is too much.
      const v16f x = load(row[k] + part->from, int(part->n));
      if (ends && k + 1 == kc)
        store(to + k * W + part->at, x, int(part->n));
      else
        store(to + k * W + part->at, x);
    }
}

// As pack_panels. Some rows at a time, so that the parts of a row are read one after another.
template <int W, class S>
inline void pack_window_panels(const S* src, const MatmulWindows& w, int64_t first, int64_t count,
                               int64_t k0, int64_t kc, float* to, int64_t panel) {
  constexpr int64_t kAtOnce = 128 / W, kBlock = 16;  // panels, rows
  for (int64_t i = 0; i < count; i += kAtOnce * W, to += kAtOnce * panel) {
    RunPart parts[kAtOnce][W];
    int64_t n[kAtOnce], panels = 0;
    for (int64_t j = i; j < count && panels < kAtOnce; j += W, ++panels)
      n[panels] = parts_of_runs(w, first + j, smaller(W, count - j), W, parts[panels]);
    Offsets rows(w.apart, k0);
    for (int64_t k = 0; k < kc; k += kBlock) {
      const S* row[kBlock];
      const int64_t block = smaller(kBlock, kc - k);
      for (int64_t r = 0; r < block; ++r) row[r] = src + rows.next();
      for (int64_t p = 0; p < panels; ++p)
        pack_window_panel<W>(row, block, parts[p], n[p], k + block == kc, to + p * panel + k * W);
    }
  }
}

template <int W>
inline void pack_window_panels(const double* src, const MatmulWindows& w, int64_t first,
                               int64_t count, int64_t k0, int64_t kc, double* to, int64_t panel) {
  for (int64_t i = 0; i < count; ++i) {
    const double* column = src + offset_of(w.runs, (first + i) / w.run) + (first + i) % w.run;
    Offsets rows(w.apart, k0);
    for (int64_t k = 0; k < kc; ++k) to[i / W * panel + k * W + i % W] = column[rows.next()];
  }
}

}  // namespace orr_cpu::ORR_ISA
