// SPDX-License-Identifier: Apache-2.0
//
// See fused_loops.h. Compiled once per instruction set.
#include "fused_loops.h"

#include "../../kernels/cpu/vmath.h"

namespace orr_cpu::ORR_ISA {
namespace {

// REQUIRES: first and last are multiples of `columns`, which is one of 16.
void gelu_rows(const float* x, const float* bias, const float* r, float* y, int64_t first,
               int64_t last, int64_t columns) {
  for (int64_t row = first; row < last; row += columns)
    for (int64_t c = 0; c < columns; c += kLanes)
      store(y + row + c, gelu(load(x + row + c) + load(bias + c)) + load(r + row + c));
}

void adam(const bench::Adam& a, int64_t first, int64_t last) {
  v16f one = splat(1.0f), b1 = splat(a.beta1), b2 = splat(a.beta2);
  v16f c1 = splat(a.correct1), c2 = splat(a.correct2), eps = splat(a.eps);
  for (int64_t i = first; i < last; i += kLanes) {
    v16f p = load(a.p + i), g = load(a.g + i);
    v16f m = b1 * load(a.m + i) + (one - b1) * g;
    v16f v = b2 * load(a.v + i) + (one - b2) * (g * g);
    v16f step = (m * c1) / (sqrt(v * c2) + eps) + p * splat(a.decay);
    store(a.p + i, p - step * splat(a.rate));
    store(a.m + i, m);
    store(a.v + i, v);
  }
}

}  // namespace

extern const bench::Loops fused_loops;
const bench::Loops fused_loops = {gelu_rows, adam};

}  // namespace orr_cpu::ORR_ISA
