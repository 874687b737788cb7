// SPDX-License-Identifier: Apache-2.0
//
// fold: every row of the result is made by one task, from the windows that reach it in their order.
#include "fold.h"
#include "rows.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class T>
struct Fold : Kernel {
  using V = Vec<T>;
  explicit Fold(const orr_op& op) : g(op) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* x = host<T>(in[0]);
    T* y = host<T>(out[0]);
    const int64_t row = g.length[2] * g.width, rows = g.lead * g.length[0] * g.length[1];
    parallel_ranges(rows, row_grain(row * g.size[2]), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) make_row(r, x, y + r * row);
    });
  }

  // The windows [first, last) along dim d that may reach index l.
  struct Range {
    int64_t first, last;
  };
  Range reaching(int d, int64_t l) const {
    const int64_t outside = l - (g.size[d] - 1) * g.dilation[d];
    return {outside > 0 ? ceil_div(outside, g.stride[d]) : 0,
            smaller(l / g.stride[d] + 1, g.count[d])};
  }
  // Which element of window o index l is; -1: it lies between two of them.
  int64_t within(int d, int64_t l, int64_t o) const {
    const int64_t at = l - o * g.stride[d], k = at / g.dilation[d];
    return k * g.dilation[d] == at ? k : -1;
  }

  void make_row(int64_t row, const T* x, T* y) const {
    const int64_t l1 = row % g.length[1], l0 = row / g.length[1] % g.length[0],
                  b = row / g.length[1] / g.length[0];
    for (int64_t l2 = 0; l2 < g.length[2]; ++l2)
      each_vector(0, g.width, [&](int64_t c, auto n) {
        store(y + l2 * g.width + c, sum(x + c, b, l0, l1, l2, n), n);
      });
  }

  template <class N>
  V sum(const T* x, int64_t b, int64_t l0, int64_t l1, int64_t l2, N n) const {
    V total = {};
    const Range r0 = reaching(0, l0), r1 = reaching(1, l1), r2 = reaching(2, l2);
    for (int64_t o0 = r0.first; o0 < r0.last; ++o0) {
      const int64_t k0 = within(0, l0, o0);
      if (k0 < 0) continue;
      for (int64_t o1 = r1.first; o1 < r1.last; ++o1) {
        const int64_t k1 = within(1, l1, o1);
        if (k1 < 0) continue;
        const int64_t windows = ((b * g.count[0] + o0) * g.count[1] + o1) * g.count[2];
        for (int64_t o2 = r2.first; o2 < r2.last; ++o2) {
          const int64_t k2 = within(2, l2, o2);
          if (k2 < 0) continue;
          const int64_t at = (((windows + o2) * g.size[0] + k0) * g.size[1] + k1) * g.size[2] + k2;
          total = total + load(x + at * g.width, n);
        }
      }
    }
    return total;
  }

  FoldGeometry g;
};

}  // namespace

Kernel* make_fold(const orr_op& op) { return make_real<Fold>(op.in[0].dtype, op); }

}  // namespace orr_cpu::ORR_ISA
