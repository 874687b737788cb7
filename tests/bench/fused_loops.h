// SPDX-License-Identifier: Apache-2.0
//
// What a person would write by hand for two fused expressions: the yardstick of bench_pointwise.
#pragma once

#include <stdint.h>

namespace bench {

struct Adam {
  float *p, *g, *m, *v;
  float rate, beta1, beta2, eps, decay, correct1, correct2;
};

struct Loops {
  // y = gelu(x + bias) + r over rows of `columns`.
  void (*gelu)(const float* x, const float* bias, const float* r, float* y, int64_t first,
               int64_t last, int64_t columns);
  void (*adam)(const Adam&, int64_t first, int64_t last);
};

}  // namespace bench

namespace orr_cpu::avx2 {
extern const bench::Loops fused_loops;
}
namespace orr_cpu::avx512 {
extern const bench::Loops fused_loops;
}
