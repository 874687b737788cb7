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

// As pack_panels, panel by panel.
template <int W, class S>
inline void pack_window_panels(const S* src, const MatmulWindows& w, int64_t first, int64_t count,
                               int64_t k0, int64_t kc, float* to, int64_t panel) {
  for (int64_t i = 0; i < count; i += W, to += panel) {
    RunPart parts[W];
    const int64_t n = parts_of_runs(w, first + i, smaller(W, count - i), W, parts);
    Offsets rows(w.apart, k0);
    if (W == 32 && n == 2 && parts[0].n == 16 && parts[1].n == 16) {
      const S *left = src + parts[0].from, *right = src + parts[1].from;
      for (int64_t k = 0; k < kc; ++k) {
        const int64_t at = rows.next();
        store(to + k * W, load(left + at, Full{}));
        store(to + k * W + 16, load(right + at, Full{}));
      }
      continue;
    }
    for (int64_t k = 0; k < kc; ++k) {
      const S* row = src + rows.next();
      // A whole vector is stored where the next row of the panel overwrites what is too much.
      const bool last = (kc - k) * W < W + 16;
      for (const RunPart* part = parts; part < parts + n; ++part) {
        const v16f x = load(row + part->from, int(part->n));
        if (last)
          store(to + k * W + part->at, x, int(part->n));
        else
          store(to + k * W + part->at, x);
      }
    }
  }
}

template <int W>
inline void pack_window_panels(const double* src, const MatmulWindows& w, int64_t first,
                               int64_t count, int64_t k0, int64_t kc, double* to, int64_t panel) {
  for (int64_t i = 0; i < count; ++i) {
    const double* column = src + offset_of(w.runs, (first + i) / w.run) + (first + i) % w.run;
    Offsets rows(w.apart, k0);
    for (int64_t k = 0; k < kc; ++k)
      to[i / W * panel + k * W + i % W] = column[rows.next()];
  }
}

}  // namespace orr_cpu::ORR_ISA
