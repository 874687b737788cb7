// SPDX-License-Identifier: Apache-2.0
//
// The block machine's two halves for one instruction set; see pointwise.h.
#pragma once

#include "pointwise.h"
#include "vec.h"

namespace orr_cpu::ORR_ISA {

// Eight registers: fewer make the choice of each step dear, more fill the CPU's window with steps
// that wait for each other (both measured).
#ifdef __AVX512F__
inline constexpr int kAccumulators = 8;
#else
inline constexpr int kAccumulators = 4;
#endif
inline constexpr int kBlock = kAccumulators * kLanes;

// Runs accumulator steps up to the first other step, which it returns.
const pointwise::Step* run_accumulator(const pointwise::Step* step, void* const* slot);

// Runs one memory step on a block whose first element has this row-major index.
void run_memory(const pointwise::Step& step, void* const* slot, int64_t position);

// Uniform random numbers of kBlock elements from `element` on.
void random_block(uint64_t seed, uint32_t id, uint32_t step, uint64_t element, float* out);

}  // namespace orr_cpu::ORR_ISA
