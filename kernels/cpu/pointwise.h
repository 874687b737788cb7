// SPDX-License-Identifier: Apache-2.0
//
// A pointwise expression as code for a block machine, an interpreter that works on blocks of
// consecutive elements. A block of values lies in a slot; one block, the accumulator, lies in
// vector registers. Accumulator steps combine it with slots; memory steps compute a slot from
// slots. The code is compiled once for any CPU (pointwise_compile.cpp) and run per instruction set.
//
// A slot holds f32 values and those of 16 and 8 bits as float, BOOL as 32-bit masks, integers as
// int64, f64 as double. Slots of inputs and outputs hold the tensor's own format.
#pragma once

#include "kernel.h"

namespace orr_cpu::pointwise {

enum { kMaxSlots = 512, kMaxTensors = 64 };
enum { kBegin = 128 };  // `compute` begins at multiples of so many elements
enum { kTurn = 32 };    // the most elements that a turn of a machine code's loop computes

// The steps. x is the accumulator; a, b and c are slots. R at the end of a name: with the operands
// exchanged.
enum Code : uint16_t {
  END,
  LOAD,
  LOAD_BF16,
  LOAD_F16,
  STORE,
  STORE_BF16,
  STORE_F16,
  ADD,
  SUB,
  SUB_R,
  MUL,
  DIV,
  DIV_R,
  MIN,
  MAX,
  FMA,      // x*a + b
  FMA_ADD,  // a*b + x
  NEG,
  ABS,
  SIGN,
  SQRT,
  RSQRT,
  RECIP,
  FLOOR,
  CEIL,
  ROUND,
  ROUND_BF16,
  ROUND_F16,
  ROUND_E4M3,
  ROUND_E5M2,
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE,
  AND,
  OR,
  XOR,
  NOT,
  ISFINITE,
  NONZERO,
  MASK_TO_ONE,
  SELECT,  // x ? a : b
  FIRST_MEMORY,
  CALL = FIRST_MEMORY,  // c = fn(a, b) of floats
  WIDE_REAL,            // c = fn(a, b, d) of doubles
  WIDE_INT,             // c = fn(a, b, d) of int64, result narrowed to `dtype`
  CONVERT,              // c = a, from dtype `from` to `dtype`
  WIDEN,                // c = the input block a of dtype `from`
  NARROW,               // the output block c of `dtype` = a
  RANDOM,               // c = uniform numbers; a, b, d = seed, step, base; imm = id
};

struct Step {
  uint16_t code;
  uint16_t a, b, c, d;
  int16_t fn, from, dtype;
  double imm;
};

// How a tensor is read in the row-major order of the output, with neighbouring dims merged: `run`
// elements lie `inner` apart, then the indices of the outer dims advance.
struct Walk {
  int32_t tensor;  // input or output number
  int32_t slot;
  int32_t bytes;  // of an element
  int32_t rank;   // of the outer dims
  bool flat;      // one run of consecutive elements
  bool again;     // one run of Program::period consecutive elements, again and again
  int64_t run, inner;
  int64_t dims[ORR_MAX_RANK], strides[ORR_MAX_RANK];
};

struct Constant {
  int32_t slot, dtype;
  double value;
};

// Machine code of a body. It computes the first `elements` elements, a multiple of the block size.
// The slots of tensors are all of these elements in place; slots of tensors that repeat one element
// have only one block, those of tensors with `again` one run. `position` is the row-major index of
// the first element, `row` the same modulo the period. Returns 0 if it cannot run there and has
// done nothing: random numbers that begin within a counter of Philox.
using BodyCode = int (*)(void* const* slot, char* scratch, int64_t elements, int64_t position,
                         int64_t row);

// The compiled expression. Arrays are owned by the kernel.
struct Program {
  int64_t elements;
  int32_t slots, stride;  // stride: bytes from one slot's block to the next in the scratch
  int32_t inputs, outputs, uniforms, constants;
  const Step* prologue;  // run once per task, on values that are the same for all elements
  const Step* body;      // run once per block
  const Walk* in;        // `inputs` tensors that vary
  const Walk* uniform;   // `uniforms` inputs that do not
  const Walk* out;
  const Constant* constant;
  int64_t period;       // of the tensors with `again`, a multiple of kTurn; 0: there are none
  BodyCode body_code;   // null: the block machine runs the body
  int32_t spill_bytes;  // scratch that body_code needs behind the blocks
};

// Runs elements [first, last); in and out are the addresses of the op's tensors.
using Runner = void (*)(const Program&, void* const* in, void* const* out, int64_t first,
                        int64_t last);

// What depends on the instruction set.
struct Isa {
  Runner run;
  int32_t block;  // elements
  bool wide;      // AVX-512
};

Kernel* make(const orr_op& op, const Isa& isa);
// Elements [first, last) of the results of such a kernel, on this thread; in and out are the
// addresses of its tensors. REQUIRES: first is a multiple of kBegin.
void compute(const Kernel& pointwise, void* const* in, void* const* out, int64_t first,
             int64_t last);
void supports(const orr_op& op, orr_support& out);

}  // namespace orr_cpu::pointwise
