// SPDX-License-Identifier: Apache-2.0
//
// The body of a compiled expression as a list of nodes, each of which computes one value, in the
// order of the steps. It has neither slots nor an accumulator.
#pragma once

#include <vector>

#include "pointwise_compile.h"

namespace orr_cpu::pointwise {

struct Node {
  enum Kind : uint8_t {
    CONSTANT,     // bits
    UNIFORM,      // a slot whose elements are all the same
    UNIFORM_INT,  // the lower halves of such a slot's int64
    LOAD,         // an element of a tensor's slot
    LOAD_U8,
    LOAD_U16,
    LOAD_F16,
    STORE,
    STORE_U8,
    STORE_U16,
    STORE_F16,
    ADD,
    SUB,
    MUL,
    DIV,
    MIN,  // MIN and MAX as the CPU instruction
    MAX,
    ADD_INT,
    SUB_INT,
    MUL_INT,    // the lower half of the product
    MUL_WORDS,  // of int64: the product of their lower halves, unsigned
    GREATER_INT,
    EQUAL_INT,
    AND,
    OR,
    XOR,
    COMPARE,  // with the predicate of _mm256_cmp_ps
    FMA,
    SELECT,
    SQRT,
    ROUND,
    ROUND_F16,
    TO_FLOAT,
    TO_INT,
    TRUNCATE,  // a real to an integer of its size; what does not fit becomes the least
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SHIFT_RIGHT_SIGNED,
    WIDEN_INT,      // half number `half` of int32 to int64
    WIDEN_REAL,     // of float to double
    WIDEN_TO_REAL,  // of int32 to double
    NARROW_INT,     // two nodes of int64 to int32: the lower halves
    NARROW_REAL,    // of double to float
    NARROW_TO_INT,  // of double to int32, as TRUNCATE
    NARROW_LONG,    // of int64 to float
    RANDOM,         // words of the random numbers number `number`
  };
  Kind kind;
  bool wide;           // elements of 8 bytes: the node has one half of the value's elements
  int8_t half;         // which one, where the operands do not say it
  int32_t operand[3];  // indices of earlier nodes, or -1
  uint64_t number;     // the constant's bits, the slot, or an operand of the instruction
};

// Random numbers of one id: the slots of seed, step and base, whose elements are all the same.
struct Random {
  int32_t seed, step, base;
  uint32_t id;
};

struct Trace : std::vector<Node> {
  std::vector<Random> random;
};

// Adds a node to the trace that this thread is making; returns its number.
int32_t note(Node::Kind kind, int32_t a, int32_t b = -1, int32_t c = -1, uint64_t number = 0);
int32_t note_wide(Node::Kind kind, int32_t a, int32_t b = -1, int32_t c = -1, uint64_t number = 0,
                  int half = 0);
int32_t note_random(const Random& random);

// The trace of the body. It is empty if the body has steps that only the block machine can run:
// functions that libm computes, pow, sin and cos of floats, quotients and powers of int64.
Trace trace(const Compiled& code);

}  // namespace orr_cpu::pointwise
