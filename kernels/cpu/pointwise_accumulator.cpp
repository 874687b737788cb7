// SPDX-License-Identifier: Apache-2.0
//
// The accumulator steps of the pointwise block machine: registers that stay in place from step to
// step, so that a chain of instructions costs one load each and no store.
#include "pointwise_steps.h"

namespace orr_cpu::ORR_ISA {
namespace {

ORR_INLINE v16f from_mask(m16 m) { return as_float(mask_to_int(m)); }
ORR_INLINE m16 to_mask(v16f x) { return int_to_mask(as_int(x)); }

ORR_INLINE v16f sign(v16f x) {
  v16f one = splat(1.0f), zero = splat(0.0f);
  v16f s = select(x > zero, one, select(x < zero, -one, zero));
  return select(is_nan(x), x, s);
}

}  // namespace

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
    x[j] = value;                                      \
  }                                                    \
  ORR_NEXT

#define ORR_STEP_OF_THREE(code, value)            \
  code : {                                        \
    const float* c = (const float*)slot[step->c]; \
    ORR_LANES {                                   \
      const float* pa = a + j * kLanes;           \
      const float* pb = b + j * kLanes;           \
      const float* pc = c + j * kLanes;           \
      x[j] = value;                               \
    }                                             \
  }                                               \
  ORR_NEXT

const pointwise::Step* run_accumulator(const pointwise::Step* step, void* const* slot) {
  // In the order of pointwise::Code.
  static const void* const label[] = {
      &&LEAVE,    &&LOAD,     &&LOAD_BF16, &&LOAD_F16,  &&STORE,   &&STORE_BF16,  &&STORE_F16,
      &&ADD,      &&SUB,      &&SUB_R,     &&MUL,       &&DIV,     &&DIV_R,       &&MIN,
      &&MAX,      &&FMA,      &&FMA_ADD,   &&NEG,       &&ABS,     &&SIGN,        &&SQRT,
      &&RSQRT,    &&RECIP,    &&FLOOR,     &&CEIL,      &&ROUND,   &&ROUND_BF16,  &&ROUND_F16,
      &&EQ,       &&NE,       &&LT,        &&LE,        &&GT,      &&GE,          &&AND,
      &&OR,       &&XOR,      &&NOT,       &&ISFINITE,  &&NONZERO, &&MASK_TO_ONE, &&SELECT,
      &&LOAD_ADD, &&LOAD_MUL, &&MUL_ADD,   &&MUL_SUB_R, &&ADD_MUL, &&MUL_ADD_MUL, &&DIV_ROOT,
      &&LEAVE,    &&LEAVE,    &&LEAVE,     &&LEAVE,     &&LEAVE,   &&LEAVE,       &&LEAVE};
  static_assert(sizeof label / sizeof label[0] == pointwise::RANDOM + 1);
  v16f x[kAccumulators] = {};
  const float *a, *b;
  --step;
  ORR_NEXT
  ORR_STEP(LOAD, load(pa))
  ORR_STEP(LOAD_BF16, load_bf16((const uint16_t*)a + j * kLanes))
  ORR_STEP(LOAD_F16, load_f16((const uint16_t*)a + j * kLanes))
  ORR_STEP(ADD, x[j] + load(pa))
  ORR_STEP(SUB, x[j] - load(pa))
  ORR_STEP(SUB_R, load(pa) - x[j])
  ORR_STEP(MUL, x[j] * load(pa))
  ORR_STEP(DIV, x[j] / load(pa))
  ORR_STEP(DIV_R, load(pa) / x[j])
  ORR_STEP(MIN, nan_min(x[j], load(pa)))
  ORR_STEP(MAX, nan_max(x[j], load(pa)))
  ORR_STEP(FMA, fma(x[j], load(pa), load(pb)))
  ORR_STEP(FMA_ADD, fma(load(pa), load(pb), x[j]))
  ORR_STEP(NEG, -x[j])
  ORR_STEP(ABS, abs(x[j]))
  ORR_STEP(SIGN, sign(x[j]))
  ORR_STEP(SQRT, sqrt(x[j]))
  ORR_STEP(RSQRT, splat(1.0f) / sqrt(x[j]))
  ORR_STEP(RECIP, splat(1.0f) / x[j])
  ORR_STEP(FLOOR, floor(x[j]))
  ORR_STEP(CEIL, ceil(x[j]))
  ORR_STEP(ROUND, round_even(x[j]))
  ORR_STEP(ROUND_BF16, round_bf16(x[j]))
  ORR_STEP(ROUND_F16, round_f16(x[j]))
  ORR_STEP(EQ, from_mask(x[j] == load(pa)))
  ORR_STEP(NE, from_mask(x[j] != load(pa)))
  ORR_STEP(LT, from_mask(x[j] < load(pa)))
  ORR_STEP(LE, from_mask(x[j] <= load(pa)))
  ORR_STEP(GT, from_mask(x[j] > load(pa)))
  ORR_STEP(GE, from_mask(x[j] >= load(pa)))
  ORR_STEP(AND, as_float(as_int(x[j]) & load_int(pa)))
  ORR_STEP(OR, as_float(as_int(x[j]) | load_int(pa)))
  ORR_STEP(XOR, as_float(as_int(x[j]) ^ load_int(pa)))
  ORR_STEP(NOT, as_float(as_int(x[j]) ^ splat_int(-1)))
  ORR_STEP(ISFINITE, from_mask(abs(x[j]) < infinity()))
  ORR_STEP(NONZERO, from_mask(x[j] != splat(0.0f)))
  ORR_STEP(MASK_TO_ONE, as_float(as_int(x[j]) & as_int(splat(1.0f))))
  ORR_STEP(SELECT, select(to_mask(x[j]), load(pa), load(pb)))
  ORR_STEP(LOAD_ADD, load(pa) + load(pb))
  ORR_STEP(LOAD_MUL, load(pa) * load(pb))
  ORR_STEP(MUL_ADD, x[j] * load(pa) + load(pb))
  ORR_STEP(MUL_SUB_R, load(pb) - x[j] * load(pa))
  ORR_STEP(ADD_MUL, x[j] + load(pa) * load(pb))
  ORR_STEP_OF_THREE(MUL_ADD_MUL, x[j] * load(pa) + load(pb) * load(pc))
  ORR_STEP_OF_THREE(DIV_ROOT, x[j] / (sqrt(load(pa) * load(pb)) + load(pc)))
STORE:
  ORR_LANES store((float*)a + j * kLanes, x[j]);
  ORR_NEXT
STORE_BF16:
  ORR_LANES store_u16((uint16_t*)a + j * kLanes, shift_right(as_int(x[j]), 16));
  ORR_NEXT
STORE_F16:
  ORR_LANES store_f16((uint16_t*)a + j * kLanes, x[j]);
  ORR_NEXT
LEAVE:
  return step;
}

}  // namespace orr_cpu::ORR_ISA
