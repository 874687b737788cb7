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

// Cuts elements [first, first + count) of each row into parts of runs, at the multiples of `most`
// elements within a run and, if `width` is not 0, of what is packed; returns how many parts there
// are. REQUIRES: room for `count`.
ORR_INLINE int64_t parts_of_runs(const MatmulWindows& w, int64_t first, int64_t count, int64_t most,
                                 int64_t width, RunPart* parts) {
  int64_t found = 0;
  for (int64_t at = 0; at < count; ++found) {
    const int64_t run = (first + at) / w.run, within = (first + at) % w.run;
    int64_t n = smaller(smaller(w.run - within, count - at), most - within % most);
    if (width) n = smaller(n, width - at % width);
    parts[found] = {offset_of(w.runs, run) + within, at, n};
    at += n;
  }
  return found;
}

// The elements of a chunk of K outside of which a packed panel is 0.
struct NonZero {
  int64_t first, last;
};

ORR_INLINE bool is_zero(v16f x) { return bits(as_int(x) == splat_int(0)) == 0xffff; }
ORR_INLINE bool is_zero(v16d) { return false; }
ORR_INLINE v16f merged(v16f x, v16f y) { return as_float(as_int(x) | as_int(y)); }
ORR_INLINE v16d merged(v16d x, v16d) { return x; }

// As pack_rows: the parts, of a chunk of K, of the rows from `first` on.
template <class S>
inline NonZero pack_window_rows(const S* src, const JoinedDim& apart, int64_t first, int64_t count,
                                const RunPart* parts, int64_t n, Scalar<S>* to) {
  const S* row[kMicroRows];
  Offsets rows(apart, first);
  for (int64_t i = 0; i < count; ++i) row[i] = src + rows.next();
  NonZero found{0, 0};
  for (const RunPart* part = parts; part < parts + n; ++part) {
    Vec<S> all = {};
    for (int64_t i = 0; i < count; ++i) {
      const S* from = row[i] + part->from;
      Scalar<S>* packed = to + i * kRowStride + part->at;
      // What is too much is overwritten by the next part, or lies between two rows.
      int64_t k = 0;
      for (; k + 16 <= part->n; k += 16) {
        const Vec<S> x = load(from + k, Full{});
        all = merged(all, x);
        store(packed + k, x, Full{});
      }
      if (k < part->n) {
        const Vec<S> x = load(from + k, int(part->n - k));
        all = merged(all, x);
        store(packed + k, x, Full{});
      }
    }
    if (is_zero(all)) continue;
    if (found.last == 0) found.first = part->at;
    found.last = part->at + part->n;
  }
  return found;
}

// Rows [0, kc) at `row` of one panel of W columns, whose parts these are. What follows the last
// row must stay, if it `ends` the panel.
template <int W, class S>
ORR_INLINE void pack_window_panel(const S* const* row, int64_t kc, const RunPart* parts, int64_t n,
                                  bool ends, float* to) {
  if (W == 32 && n == 1 && parts[0].n == W) {
    const int64_t left = parts[0].from, right = left + 16;
    for (int64_t k = 0; k < kc; ++k) {
      store(to + k * W, load(row[k] + left, Full{}));
      store(to + k * W + 16, load(row[k] + right, Full{}));
    }
    return;
  }
  for (int64_t k = 0; k < kc; ++k)
    for (const RunPart* part = parts; part < parts + n; ++part)
      for (int64_t i = 0; i < part->n; i += 16) {
        // A whole vector is stored where the next row of the panel overwrites what is too much.
        const int left = int(smaller(16, part->n - i));
        const v16f x = load(row[k] + part->from + i, left);
        if (ends && k + 1 == kc)
          store(to + k * W + part->at + i, x, left);
        else
          store(to + k * W + part->at + i, x);
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
      n[panels] = parts_of_runs(w, first + j, smaller(W, count - j), w.run, W, parts[panels]);
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
