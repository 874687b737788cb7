// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10 for sixteen counters at a time; the numbers are those of orr_uniform (ops.h).
#include "pointwise_steps.h"

namespace orr_cpu::ORR_ISA {
namespace {

// The 64 numbers of counters [first, first + 16), in order.
void uniforms(uint64_t seed, uint32_t id, uint32_t step, uint64_t first, float* out) {
  uint32_t low = uint32_t(first), room = 0u - low;  // counters up to the carry; 0: all
  alignas(64) uint32_t carry[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i)
    carry[i] = uint32_t(first >> 32) + (low != 0 && i >= room ? 1 : 0);
  v16i c0 = splat_int(int32_t(low)) + lane_index(), c1 = load_int(carry);
  v16i c2 = splat_int(int32_t(id)), c3 = splat_int(int32_t(step));
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  const v16i m0 = splat_int(int32_t(0xD2511F53u)), m1 = splat_int(int32_t(0xCD9E8D57u));
  for (int round = 0; round < 10; ++round) {
    v16i low0, high0, low1, high1;
    multiply_wide(m0, c0, low0, high0);
    multiply_wide(m1, c2, low1, high1);
    c0 = high1 ^ c1 ^ splat_int(int32_t(k0));
    c2 = high0 ^ c3 ^ splat_int(int32_t(k1));
    c1 = low1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  alignas(64) float word[4][kLanes];
  v16i c[4] = {c0, c1, c2, c3};
  for (int w = 0; w < 4; ++w)
    store(word[w], to_float(shift_right(c[w], 8)) * splat(1.0f / 16777216.0f));
  for (int i = 0; i < kLanes; ++i)
    for (int w = 0; w < 4; ++w) out[4 * i + w] = word[w][i];
}

}  // namespace

void random_block(uint64_t seed, uint32_t id, uint32_t step, uint64_t element, float* out) {
  alignas(64) float t[kBlock + 4 * kLanes];
  int skip = int(element & 3);
  for (int i = 0; i < kBlock + skip; i += 4 * kLanes)
    uniforms(seed, id, step, (element >> 2) + uint64_t(i / 4), t + i);
  __builtin_memcpy(out, t + skip, kBlock * sizeof(float));
}

}  // namespace orr_cpu::ORR_ISA
