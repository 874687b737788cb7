// SPDX-License-Identifier: Apache-2.0
//
// The accumulator steps of the pointwise block machine. The accumulator stays in registers from
// step to step, so each instruction of a chain costs one load and no store.
#include "pointwise_functions.h"
#include "pointwise_steps.h"

namespace orr_cpu::ORR_ISA {
#define ORR_LANES _Pragma("GCC unroll 16") for (int j = 0; j < kAccumulators; ++j)

// Goes to the next step. Each step jumps from its own place, which lets the CPU learn the sequence.
#define ORR_NEXT                   \
  ++step;                          \
  a = (const float*)slot[step->a]; \
  b = (const float*)slot[step->b]; \
  goto* label[step->code];

#define ORR_STEP(code, value)                          \
  code:                                                \
  ORR_LANES {                                          \
    [[maybe_unused]] const float* pa = a + j * kLanes; \
    [[maybe_unused]] const float* pb = b + j * kLanes; \
    [[maybe_unused]] v16f& x = accumulator[j];         \
    x = value;                                         \
  }                                                    \
  ORR_NEXT

#define A load(pa)
#define B load(pb)

const pointwise::Step* run_accumulator(const pointwise::Step* step, void* const* slot) {
  // In the order of pointwise::Code.
  static const void* const label[] = {
      &&LEAVE,       &&LOAD,       &&LOAD_BF16, &&LOAD_F16, &&STORE, &&STORE_BF16, &&STORE_F16,
      &&ADD,         &&SUB,        &&SUB_R,     &&MUL,      &&DIV,   &&DIV_R,      &&MIN,
      &&MAX,         &&FMA,        &&FMA_ADD,   &&NEG,      &&ABS,   &&SIGN,       &&SQRT,
      &&RSQRT,       &&RECIP,      &&FLOOR,     &&CEIL,     &&ROUND, &&ROUND_BF16, &&ROUND_F16,
      &&ROUND_E4M3,  &&ROUND_E5M2, &&EQ,        &&NE,       &&LT,    &&LE,         &&GT,
      &&GE,          &&AND,        &&OR,        &&XOR,      &&NOT,   &&ISFINITE,   &&NONZERO,
      &&MASK_TO_ONE, &&SELECT,     &&LEAVE,     &&LEAVE,    &&LEAVE, &&LEAVE,      &&LEAVE,
      &&LEAVE,       &&LEAVE};
  static_assert(sizeof label / sizeof label[0] == pointwise::RANDOM + 1);
  v16f accumulator[kAccumulators] = {};
  const float *a, *b;
  --step;
  ORR_NEXT
#include "pointwise_steps.inc"
LOAD_BF16:
  ORR_LANES accumulator[j] = load_bf16((const uint16_t*)a + j * kLanes);
  ORR_NEXT
LOAD_F16:
  ORR_LANES accumulator[j] = load_f16((const uint16_t*)a + j * kLanes);
  ORR_NEXT
STORE:
  ORR_LANES store((float*)a + j * kLanes, accumulator[j]);
  ORR_NEXT
STORE_BF16:
  ORR_LANES store_u16((uint16_t*)a + j * kLanes, shift_right(as_int(accumulator[j]), 16));
  ORR_NEXT
STORE_F16:
  ORR_LANES store_f16((uint16_t*)a + j * kLanes, accumulator[j]);
  ORR_NEXT
LEAVE:
  return step;
}

}  // namespace orr_cpu::ORR_ISA
