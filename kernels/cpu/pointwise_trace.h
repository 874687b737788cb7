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
    CONSTANT,  // bits
    UNIFORM,   // a slot whose elements are all the same
    LOAD,      // an element of a tensor's slot
    LOAD_U16,
    LOAD_F16,
    STORE,
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
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SHIFT_RIGHT_SIGNED,
  };
  Kind kind;
  int32_t operand[3];  // indices of earlier nodes, or -1
  uint32_t number;     // the constant's bits, the slot, or an operand of the instruction
};

using Trace = std::vector<Node>;

// Adds a node to the trace that this thread is making; returns its number.
int32_t note(Node::Kind kind, int32_t a, int32_t b = -1, int32_t c = -1, uint32_t number = 0);

// The trace of the body. It is empty if the body has steps that only the block machine can run:
// values of 8 bytes, integers, booleans in memory, random numbers, pow, sin, cos.
Trace trace(const Compiled& code);

}  // namespace orr_cpu::pointwise
