// SPDX-License-Identifier: Apache-2.0
//
// Sixteen lanes that compute nothing: each operation is recorded, and becomes machine code later
// (pointwise_code.cpp). So code that uses simd.h, such as vmath.h, can be both compiled and
// translated. Included only by simd.h; simd_avx512.h has the comments.
#pragma once

#include "pointwise_trace.h"

namespace orr_cpu::ORR_ISA {

using pointwise::Node;
using pointwise::note;

struct v16f {
  int32_t node;
};
struct v16i {
  int32_t node;
};
struct m16 {
  int32_t node;
};

ORR_INLINE v16i splat_int(int32_t x) { return {note(Node::CONSTANT, -1, -1, -1, uint32_t(x))}; }
ORR_INLINE v16f splat(float x) { return {splat_int(__builtin_bit_cast(int32_t, x)).node}; }

// An operand of a step. Elements of a tensor are loaded only when an instruction uses them.
ORR_INLINE v16i load_u16(uint32_t slot) { return {note(Node::LOAD_U16, -1, -1, -1, slot)}; }
ORR_INLINE v16f load_f16(uint32_t slot) { return {note(Node::LOAD_F16, -1, -1, -1, slot)}; }
ORR_INLINE void store(uint32_t slot, v16f x) { note(Node::STORE, x.node, -1, -1, slot); }
ORR_INLINE void store_u16(uint32_t slot, v16i x) { note(Node::STORE_U16, x.node, -1, -1, slot); }
ORR_INLINE void store_f16(uint32_t slot, v16f x) { note(Node::STORE_F16, x.node, -1, -1, slot); }

#define ORR_NOTE(name, type, op) \
  ORR_INLINE type name(type x, type y) { return {note(Node::op, x.node, y.node)}; }
ORR_NOTE(operator+, v16f, ADD)
ORR_NOTE(operator-, v16f, SUB)
ORR_NOTE(operator*, v16f, MUL)
ORR_NOTE(operator/, v16f, DIV)
ORR_NOTE(min, v16f, MIN)
ORR_NOTE(max, v16f, MAX)
ORR_NOTE(operator+, v16i, ADD_INT)
ORR_NOTE(operator-, v16i, SUB_INT)
ORR_NOTE(operator*, v16i, MUL_INT)
ORR_NOTE(operator&, v16i, AND)
ORR_NOTE(operator|, v16i, OR)
ORR_NOTE(operator^, v16i, XOR)
#undef ORR_NOTE

ORR_INLINE v16f fma(v16f x, v16f y, v16f z) { return {note(Node::FMA, x.node, y.node, z.node)}; }
ORR_INLINE v16f sqrt(v16f x) { return {note(Node::SQRT, x.node)}; }
ORR_INLINE v16f round_f16(v16f x) { return {note(Node::ROUND_F16, x.node)}; }

// Records an operation that also takes a number.
#define ORR_NOTE(name, result, type, op) \
  ORR_INLINE result name(type x, int n) { return {note(Node::op, x.node, -1, -1, uint32_t(n))}; }
ORR_NOTE(round_to, v16f, v16f, ROUND)
ORR_NOTE(shift_left, v16i, v16i, SHIFT_LEFT)
ORR_NOTE(shift_right, v16i, v16i, SHIFT_RIGHT)
ORR_NOTE(shift_right_signed, v16i, v16i, SHIFT_RIGHT_SIGNED)
#undef ORR_NOTE
ORR_INLINE v16f round_even(v16f x) { return round_to(x, 8); }
ORR_INLINE v16f floor(v16f x) { return round_to(x, 9); }
ORR_INLINE v16f ceil(v16f x) { return round_to(x, 10); }

ORR_INLINE v16i as_int(v16f x) { return {x.node}; }
ORR_INLINE v16f as_float(v16i x) { return {x.node}; }
ORR_INLINE v16f to_float(v16i x) { return {note(Node::TO_FLOAT, x.node)}; }
ORR_INLINE v16i to_int_even(v16f x) { return {note(Node::TO_INT, x.node)}; }

ORR_INLINE m16 compare(v16f x, v16f y, int predicate) {
  return {note(Node::COMPARE, x.node, y.node, -1, uint32_t(predicate))};
}
ORR_INLINE m16 operator<(v16f x, v16f y) { return compare(x, y, _CMP_LT_OQ); }
ORR_INLINE m16 operator<=(v16f x, v16f y) { return compare(x, y, _CMP_LE_OQ); }
ORR_INLINE m16 operator>(v16f x, v16f y) { return compare(x, y, _CMP_GT_OQ); }
ORR_INLINE m16 operator>=(v16f x, v16f y) { return compare(x, y, _CMP_GE_OQ); }
ORR_INLINE m16 operator==(v16f x, v16f y) { return compare(x, y, _CMP_EQ_OQ); }
ORR_INLINE m16 operator!=(v16f x, v16f y) { return compare(x, y, _CMP_NEQ_UQ); }
ORR_INLINE m16 is_nan(v16f x) { return compare(x, x, _CMP_UNORD_Q); }
ORR_INLINE m16 operator>(v16i x, v16i y) { return {note(Node::GREATER_INT, x.node, y.node)}; }
ORR_INLINE m16 operator==(v16i x, v16i y) { return {note(Node::EQUAL_INT, x.node, y.node)}; }
ORR_INLINE v16f select(m16 m, v16f x, v16f y) {
  return {note(Node::SELECT, m.node, x.node, y.node)};
}
ORR_INLINE v16i select(m16 m, v16i x, v16i y) {
  return {note(Node::SELECT, m.node, x.node, y.node)};
}
ORR_INLINE v16i mask_to_int(m16 m) { return {m.node}; }
ORR_INLINE m16 int_to_mask(v16i x) { return {x.node}; }

}  // namespace orr_cpu::ORR_ISA
