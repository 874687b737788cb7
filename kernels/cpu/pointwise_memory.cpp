// SPDX-License-Identifier: Apache-2.0
//
// The memory steps of the pointwise block machine that work on floats, and conversions.
#include "pointwise_functions.h"
#include "pointwise_steps.h"
#include "pointwise_wide.h"

namespace orr_cpu::ORR_ISA {
namespace {

// Correctly rounded but for one case in 2^28: through double.
void power(float* to, const float* a, const float* b) {
  for (int i = 0; i < kBlock; ++i) to[i] = float(::pow(double(a[i]), double(b[i])));
}

void call(int fn, float* to, const float* a, const float* b) {
  const auto lanes = [&](auto f) {
    for (int i = 0; i < kBlock; i += kLanes) store(to + i, f(load(a + i), load(b + i)));
  };
  if (each_lane(fn, lanes)) return;
  fn == ORR_FN_POW ? power(to, a, b) : sines(to, a, kBlock, fn == ORR_FN_COS);
}

}  // namespace

void run_memory(const pointwise::Step& s, void* const* slot, int64_t position) {
  void *to = slot[s.c], *a = slot[s.a], *b = slot[s.b], *d = slot[s.d];
  switch (s.code) {
    case pointwise::CALL: return call(s.fn, (float*)to, (float*)a, (float*)b);
    case pointwise::WIDE_REAL: return wide_real(s.fn, to, a, b, d);
    case pointwise::WIDE_INT: return wide_int(s.fn, s.dtype, to, a, b, d);
    case pointwise::CONVERT: return convert(s.from, s.dtype, to, a);
    case pointwise::WIDEN: return widen(s.from, to, a);
    case pointwise::NARROW: return narrow(s.dtype, to, a);
    default: {
      alignas(64) float numbers[kBlock];  // doubles are the same numbers
      const bool wide = s.dtype == ORR_F64;
      random_block(uint64_t(*(int64_t*)a), uint32_t(s.imm), uint32_t(*(int64_t*)b),
                   uint64_t(*(int64_t*)d + position), wide ? numbers : (float*)to);
      for (int i = 0; wide && i < kBlock; ++i) ((double*)to)[i] = double(numbers[i]);
    }
  }
}

}  // namespace orr_cpu::ORR_ISA
