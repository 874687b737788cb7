// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of neighbouring elements, equal to those of orr_uniform (ops.h).
#include "philox.h"
#include "pointwise_steps.h"

namespace orr_cpu::ORR_ISA {
namespace {

// The 64 numbers of counters [first, first + 16), in order.
void uniforms(uint64_t seed, uint32_t id, uint32_t step, uint64_t first, float* out) {
  uint32_t low = uint32_t(first), room = 0u - low;  // counters up to the carry; 0: all
  alignas(64) uint32_t carry[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i)
    carry[i] = uint32_t(first >> 32) + (low != 0 && i >= room ? 1 : 0);
  v16i c[4];
  philox(seed, id, step, splat_int(int32_t(low)) + lane_index(), load_int(carry), c);
  alignas(64) float word[4][kLanes];
  for (int w = 0; w < 4; ++w) store(word[w], uniform(c[w]));
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
