// SPDX-License-Identifier: Apache-2.0
//
// The memory steps of the pointwise block machine that work on floats, and conversions.
#include "pointwise_steps.h"
#include "pointwise_wide.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class Fn>
ORR_INLINE void map(float* to, const float* a, Fn&& fn) {
  for (int i = 0; i < kBlock; i += kLanes) store(to + i, fn(load(a + i)));
}

// Correctly rounded but for one case in 2^28: through double.
void power(float* to, const float* a, const float* b) {
  for (int i = 0; i < kBlock; ++i) to[i] = float(::pow(double(a[i]), double(b[i])));
}

void call(int fn, float* to, const float* a, const float* b) {
  switch (fn) {
    case ORR_FN_EXP: return map(to, a, [](v16f x) { return exp(x); });
    case ORR_FN_LOG: return map(to, a, [](v16f x) { return log(x); });
    case ORR_FN_TANH: return map(to, a, [](v16f x) { return tanh(x); });
    case ORR_FN_SIGMOID: return map(to, a, [](v16f x) { return sigmoid(x); });
    case ORR_FN_ERF: return map(to, a, [](v16f x) { return erf(x); });
    case ORR_FN_GELU: return map(to, a, [](v16f x) { return gelu(x); });
    case ORR_FN_GELU_GRAD: return map(to, a, [](v16f x) { return gelu_grad(x); });
    case ORR_FN_SIN: return sines(to, a, kBlock, 0);
    case ORR_FN_COS: return sines(to, a, kBlock, 1);
    case ORR_FN_POW: return power(to, a, b);
    default:
      for (int i = 0; i < kBlock; i += kLanes) {
        v16f x = load(a + i), y = load(b + i);
        store(to + i, x - floor(x / y) * y);
      }
  }
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
    default:
      random_block(uint64_t(*(int64_t*)a), uint32_t(s.imm), uint32_t(*(int64_t*)b),
                   uint64_t(*(int64_t*)d + position), (float*)to);
  }
}

}  // namespace orr_cpu::ORR_ISA
