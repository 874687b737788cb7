// SPDX-License-Identifier: Apache-2.0
//
// The two parts of the block machine (pointwise.h) for one instruction set.
#pragma once

#include "pointwise.h"
#include "vec.h"

namespace orr_cpu::ORR_ISA {

// The accumulator has eight registers. With fewer, dispatching a step costs too much for its work;
// with more, the CPU's window fills with steps that wait for each other (both measured).
#ifdef __AVX512F__
inline constexpr int kAccumulators = 8;
#else
inline constexpr int kAccumulators = 4;
#endif
inline constexpr int kBlock = kAccumulators * kLanes;

// Runs accumulator steps, and returns the first step that is no accumulator step.
const pointwise::Step* run_accumulator(const pointwise::Step* step, void* const* slot);

// Runs one memory step on a block whose first element has this row-major index.
void run_memory(const pointwise::Step& step, void* const* slot, int64_t position);

// Uniform random numbers of kBlock elements from `element` on.
void random_block(uint64_t seed, uint32_t id, uint32_t step, uint64_t element, float* out);

}  // namespace orr_cpu::ORR_ISA
