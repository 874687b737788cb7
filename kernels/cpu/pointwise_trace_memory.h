// SPDX-License-Identifier: Apache-2.0
//
// The memory steps (pointwise.h) as nodes: doubles, integers, conversions, random numbers. What
// they compute is what pointwise_real.cpp and pointwise_int.cpp do, with int32 and u8 in lanes of
// 32 bits, where the same bits come out. Each function returns whether it could note the step.
// Included only by pointwise_trace.cpp.
#pragma once

#include "pointwise_trace_slots.h"

namespace orr_cpu::ORR_ISA {

using pointwise::note_wide;
using pointwise::Step;

// Calls f(half) for both halves.
template <class Fn>
inline v16w both(Fn&& f) {
  const int32_t low = f(0);
  return {low, f(1)};
}
inline int32_t of(v16w x, int half) { return half ? x.high : x.low; }
inline v16w wide(Node::Kind kind, v16w x, v16w y) {
  return both([&](int h) { return note_wide(kind, of(x, h), of(y, h)); });
}
inline v16w wide(Node::Kind kind, v16w x, int number = 0) {
  return both([&](int h) { return note_wide(kind, of(x, h), -1, -1, uint64_t(number)); });
}
inline v16w splat_wide(uint64_t bits) {
  const int32_t n = note_wide(Node::CONSTANT, -1, -1, -1, bits);
  return {n, n};
}
inline v16w splat_wide(double x) { return splat_wide(__builtin_bit_cast(uint64_t, x)); }
inline v16w wide_fma(v16w x, v16w y, v16w z) {
  return both([&](int h) { return note_wide(Node::FMA, of(x, h), of(y, h), of(z, h)); });
}

// From 32 bits to 64 and back; masks are integers of ones or zeros.
inline v16w widen(Node::Kind kind, int32_t x) {
  return both([&](int h) { return note_wide(kind, x, -1, -1, 0, h); });
}
inline int32_t narrow(Node::Kind kind, v16w x) { return note(kind, x.low, x.high); }
inline v16w wide_mask(m16 m) { return widen(Node::WIDEN_INT, m.node); }
inline v16w wide_select(v16w mask, v16w x, v16w y) {
  return both([&](int h) { return note_wide(Node::SELECT, of(mask, h), of(x, h), of(y, h)); });
}
inline v16w wide_compare(v16w x, v16w y, int predicate) {
  return both(
      [&](int h) { return note_wide(Node::COMPARE, of(x, h), of(y, h), -1, uint64_t(predicate)); });
}
inline v16i narrow_mask(v16w m) { return {narrow(Node::NARROW_INT, m)}; }

// The predicate of _mm256_cmp_ps for a comparison, or -1.
inline int predicate_of(int fn) {
  switch (fn) {
    case ORR_FN_EQ: return _CMP_EQ_OQ;
    case ORR_FN_NE: return _CMP_NEQ_UQ;
    case ORR_FN_LT: return _CMP_LT_OQ;
    case ORR_FN_LE: return _CMP_LE_OQ;
    case ORR_FN_GT: return _CMP_GT_OQ;
    case ORR_FN_GE: return _CMP_GE_OQ;
    default: return -1;
  }
}

// The larger or smaller double; NaN if one is NaN (nan_max of vec.h).
inline v16w wide_extreme(Node::Kind kind, v16w x, v16w y) {
  return wide_select(wide_compare(y, y, _CMP_UNORD_Q), y, wide(kind, y, x));
}
inline v16w wide_sign(v16w x) {
  const v16w zero = splat_wide(0.0), down = splat_wide(-1.0);
  const v16w below = wide_select(wide_compare(x, zero, _CMP_LT_OQ), down, zero);
  const v16w s = wide_select(wide_compare(x, zero, _CMP_GT_OQ), splat_wide(1.0), below);
  return wide_select(wide_compare(x, x, _CMP_UNORD_Q), x, s);
}

inline bool take_real(const Step& s, Slots& slots) {
  const auto a = [&] { return slots.load_wide(s.a); };
  const auto b = [&] { return slots.load_wide(s.b); };
  const auto d = [&] { return slots.load_wide(s.d); };
  const auto size = [&] { return wide(Node::AND, a(), splat_wide(uint64_t(INT64_MAX))); };
  const auto set = [&](auto x) { return slots.set(s.c, x), true; };
  if (const int p = predicate_of(s.fn); p >= 0) return set(narrow_mask(wide_compare(a(), b(), p)));
  switch (s.fn) {
    case ORR_FN_ADD: return set(wide(Node::ADD, a(), b()));
    case ORR_FN_SUB: return set(wide(Node::SUB, a(), b()));
    case ORR_FN_MUL: return set(wide(Node::MUL, a(), b()));
    case ORR_FN_DIV: return set(wide(Node::DIV, a(), b()));
    case ORR_FN_MIN: return set(wide_extreme(Node::MIN, a(), b()));
    case ORR_FN_MAX: return set(wide_extreme(Node::MAX, a(), b()));
    case ORR_FN_FMA: return set(wide_fma(a(), b(), d()));
    case ORR_FN_MOD: {
      const v16w x = a(), y = b(), q = wide(Node::ROUND, wide(Node::DIV, x, y), 9);
      return set(wide(Node::SUB, x, wide(Node::MUL, q, y)));
    }
    case ORR_FN_NEG: return set(wide(Node::XOR, a(), splat_wide(uint64_t(INT64_MIN))));
    case ORR_FN_ABS: return set(size());
    case ORR_FN_SIGN: return set(wide_sign(a()));
    case ORR_FN_SQRT: return set(wide(Node::SQRT, a()));
    case ORR_FN_RSQRT: return set(wide(Node::DIV, splat_wide(1.0), wide(Node::SQRT, a())));
    case ORR_FN_RECIP: return set(wide(Node::DIV, splat_wide(1.0), a()));
    case ORR_FN_FLOOR: return set(wide(Node::ROUND, a(), 9));
    case ORR_FN_CEIL: return set(wide(Node::ROUND, a(), 10));
    case ORR_FN_ROUND: return set(wide(Node::ROUND, a(), 8));
    case ORR_FN_SELECT: return set(wide_select(wide_mask(to_mask(slots.load(s.a))), b(), d()));
    case ORR_FN_ISFINITE:
      return set(narrow_mask(wide_compare(size(), splat_wide(__builtin_inf()), _CMP_LT_OQ)));
    default: return false;
  }
}

// Lanes of int32, and of u8, which the caller cuts to 8 bits.
inline v16i not_of(v16i x) { return x ^ splat_int(-1); }
inline v16i is_greater(v16i x, v16i y) { return mask_to_int(x > y); }
// Through double, which holds the quotient of any two int32 well enough to truncate it. Division by
// zero gives 0.
inline v16i quotient(v16i x, v16i y) {
  const auto real = [](v16i z) { return widen(Node::WIDEN_TO_REAL, z.node); };
  const v16i q = {narrow(Node::NARROW_TO_INT, wide(Node::DIV, real(x), real(y)))};
  return select(y == splat_int(0), splat_int(0), q);
}
// The remainder has the sign of y; that by zero is x.
inline v16i modulo(v16i x, v16i y) {
  const v16i r = x - quotient(x, y) * y;
  const v16i apart = shift_right_signed(r ^ y, 31);
  const v16i whole = mask_to_int(r == splat_int(0)) | mask_to_int(y == splat_int(0));
  return r + (y & apart & not_of(whole));
}
// x with the signs of `negative`, a mask.
inline v16i negate(v16i x, v16i negative) { return (x ^ negative) - negative; }

// What the comparison is for integers, by GREATER and EQUAL.
template <class V, class Greater, class Equal, class Not>
inline auto compare_integers(int fn, V x, V y, Greater greater, Equal equal, Not inverse) {
  switch (fn) {
    case ORR_FN_EQ: return equal(x, y);
    case ORR_FN_NE: return inverse(equal(x, y));
    case ORR_FN_LT: return greater(y, x);
    case ORR_FN_LE: return inverse(greater(x, y));
    case ORR_FN_GT: return greater(x, y);
    default: return inverse(greater(y, x));
  }
}

inline bool take_narrow_integer(const Step& s, Slots& slots) {
  const auto a = [&] { return slots.load_int(s.a); };
  const auto b = [&] { return slots.load_int(s.b); };
  const auto d = [&] { return slots.load_int(s.d); };
  const auto set = [&](v16i x) {
    slots.set(s.c, s.dtype == ORR_U8 ? x & splat_int(255) : x);
    return true;
  };
  if (predicate_of(s.fn) >= 0)
    return set(compare_integers(
        s.fn, a(), b(), is_greater, [](v16i x, v16i y) { return mask_to_int(x == y); }, not_of));
  switch (s.fn) {
    case ORR_FN_ADD: return set(a() + b());
    case ORR_FN_SUB: return set(a() - b());
    case ORR_FN_MUL: return set(a() * b());
    case ORR_FN_DIV: return set(quotient(a(), b()));
    case ORR_FN_MOD: return set(modulo(a(), b()));
    case ORR_FN_FMA: return set(a() * b() + d());
    case ORR_FN_NEG: return set(splat_int(0) - a());
    case ORR_FN_SELECT: return set(select(to_mask(slots.load(s.a)), b(), d()));
    case ORR_FN_POW: return false;
    default: break;
  }
  const v16i x = a(), zero = splat_int(0);
  switch (s.fn) {
    case ORR_FN_MIN: return set(select(x > b(), b(), x));
    case ORR_FN_MAX: return set(select(x > b(), x, b()));
    case ORR_FN_ABS: return set(negate(x, shift_right_signed(x, 31)));
    case ORR_FN_SIGN: return set(is_greater(zero, x) - is_greater(x, zero));
    default: return set(x);  // floor, ceil, round
  }
}

inline v16w wide_product(v16w x, v16w y) {
  const v16w across = wide(Node::ADD_INT, wide(Node::MUL_WORDS, wide(Node::SHIFT_RIGHT, x, 32), y),
                           wide(Node::MUL_WORDS, x, wide(Node::SHIFT_RIGHT, y, 32)));
  return wide(Node::ADD_INT, wide(Node::MUL_WORDS, x, y), wide(Node::SHIFT_LEFT, across, 32));
}

inline bool take_integer(const Step& s, Slots& slots) {
  if (s.from != ORR_I64) return take_narrow_integer(s, slots);
  const auto a = [&] { return slots.load_wide(s.a); };
  const auto b = [&] { return slots.load_wide(s.b); };
  const auto d = [&] { return slots.load_wide(s.d); };
  const auto set = [&](auto x) { return slots.set(s.c, x), true; };
  const auto greater = [](v16w x, v16w y) { return wide(Node::GREATER_INT, x, y); };
  const auto equal = [](v16w x, v16w y) { return wide(Node::EQUAL_INT, x, y); };
  const auto inverse = [](v16w x) { return wide(Node::XOR, x, splat_wide(~uint64_t())); };
  if (predicate_of(s.fn) >= 0)
    return set(narrow_mask(compare_integers(s.fn, a(), b(), greater, equal, inverse)));
  switch (s.fn) {
    case ORR_FN_DIV:
    case ORR_FN_MOD:
    case ORR_FN_POW: return false;
    case ORR_FN_ADD: return set(wide(Node::ADD_INT, a(), b()));
    case ORR_FN_SUB: return set(wide(Node::SUB_INT, a(), b()));
    case ORR_FN_MUL: return set(wide_product(a(), b()));
    case ORR_FN_FMA: return set(wide(Node::ADD_INT, wide_product(a(), b()), d()));
    case ORR_FN_NEG: return set(wide(Node::SUB_INT, splat_wide(uint64_t()), a()));
    case ORR_FN_SELECT: return set(wide_select(wide_mask(to_mask(slots.load(s.a))), b(), d()));
    default: break;
  }
  const v16w x = a(), negative = greater(splat_wide(uint64_t()), x);
  switch (s.fn) {
    case ORR_FN_MIN: return set(wide_select(greater(x, b()), b(), x));
    case ORR_FN_MAX: return set(wide_select(greater(x, b()), x, b()));
    case ORR_FN_ABS: return set(wide(Node::SUB_INT, wide(Node::XOR, x, negative), negative));
    case ORR_FN_SIGN: return set(wide(Node::SUB_INT, negative, greater(x, splat_wide(uint64_t()))));
    default: return set(x);  // floor, ceil, round
  }
}

inline bool is_float(int dtype) {
  return dtype == ORR_F32 || dtype == ORR_BF16 || dtype == ORR_F16 || is_eight_bits(dtype);
}
inline v16i is_not_zero(v16i x) { return not_of(mask_to_int(x == splat_int(0))); }

// To float, to which those of 16 bits are rounded later.
inline bool convert_to_float(const Step& s, Slots& slots) {
  const auto set = [&](v16f x) { return slots.set(s.c, x), true; };
  switch (s.from) {
    case ORR_F64: return set({narrow(Node::NARROW_REAL, slots.load_wide(s.a))});
    case ORR_I64: return set({narrow(Node::NARROW_LONG, slots.load_wide(s.a))});
    case ORR_BOOL: return set(as_float(as_int(slots.load(s.a)) & as_int(splat(1.0f))));
    case ORR_I32:
    case ORR_U8: return set(to_float(slots.load_int(s.a)));
    default: return set(slots.load(s.a));
  }
}
inline bool convert_to_double(const Step& s, Slots& slots) {
  const auto set = [&](v16w x) { return slots.set(s.c, x), true; };
  switch (s.from) {
    case ORR_F64: return set(slots.load_wide(s.a));
    case ORR_I64: return set(wide(Node::TO_FLOAT, slots.load_wide(s.a)));
    case ORR_BOOL: {
      const v16w mask = wide_mask(to_mask(slots.load(s.a)));
      return set(wide(Node::AND, mask, splat_wide(1.0)));
    }
    case ORR_I32:
    case ORR_U8: return set(widen(Node::WIDEN_TO_REAL, slots.load_int(s.a).node));
    default: return set(widen(Node::WIDEN_REAL, slots.load(s.a).node));
  }
}
inline bool convert_to_bool(const Step& s, Slots& slots) {
  const auto set = [&](v16i x) { return slots.set(s.c, x), true; };
  const auto other = [&](v16w x) { return set(not_of(narrow_mask(x))); };
  switch (s.from) {
    case ORR_F64:
      return set(narrow_mask(wide_compare(slots.load_wide(s.a), splat_wide(0.0), _CMP_NEQ_UQ)));
    case ORR_I64: return other(wide(Node::EQUAL_INT, slots.load_wide(s.a), splat_wide(uint64_t())));
    case ORR_BOOL: return set(as_int(slots.load(s.a)));
    case ORR_I32:
    case ORR_U8: return set(is_not_zero(slots.load_int(s.a)));
    default: return set(as_int(from_mask(slots.load(s.a) != splat(0.0f))));
  }
}
inline bool convert_to_long(const Step& s, Slots& slots) {
  const auto set = [&](v16w x) { return slots.set(s.c, x), true; };
  switch (s.from) {
    case ORR_F64: return set(wide(Node::TRUNCATE, slots.load_wide(s.a)));
    case ORR_I64: return set(slots.load_wide(s.a));
    case ORR_BOOL:
      return set(widen(Node::WIDEN_INT, (as_int(slots.load(s.a)) & splat_int(1)).node));
    case ORR_I32:
    case ORR_U8: return set(widen(Node::WIDEN_INT, slots.load_int(s.a).node));
    default: return set(wide(Node::TRUNCATE, widen(Node::WIDEN_REAL, slots.load(s.a).node)));
  }
}
inline bool convert_to_int(const Step& s, Slots& slots) {
  const auto set = [&](v16i x) {
    slots.set(s.c, s.dtype == ORR_U8 ? x & splat_int(255) : x);
    return true;
  };
  switch (s.from) {
    case ORR_I64: return set({narrow(Node::NARROW_INT, slots.load_wide(s.a))});
    case ORR_BOOL: return set(as_int(slots.load(s.a)) & splat_int(1));
    case ORR_I32:
    case ORR_U8: return set(slots.load_int(s.a));
    default: break;
  }
  if (s.dtype == ORR_U8) return false;  // by way of int64
  if (s.from == ORR_F64) return set({narrow(Node::NARROW_TO_INT, slots.load_wide(s.a))});
  return set({note(Node::TRUNCATE, slots.load(s.a).node)});
}

inline bool take_conversion(const Step& s, Slots& slots) {
  if (is_float(s.dtype)) return convert_to_float(s, slots);
  if (s.dtype == ORR_F64) return convert_to_double(s, slots);
  if (s.dtype == ORR_BOOL) return convert_to_bool(s, slots);
  if (s.dtype == ORR_I64) return convert_to_long(s, slots);
  return convert_to_int(s, slots);
}

// From a tensor's format to the slot's, and back.
inline bool take_widening(const Step& s, Slots& slots) {
  const bool bytes = s.from != ORR_I32;
  const v16i x = {note(bytes ? Node::LOAD_U8 : Node::LOAD, -1, -1, -1, s.a)};
  if (s.from == ORR_F8_E4M3)
    slots.set(s.c, from_e4m3(x));
  else if (s.from == ORR_F8_E5M2)
    slots.set(s.c, from_e5m2(x));
  else
    slots.set(s.c, s.from == ORR_BOOL ? is_not_zero(x) : x);
  return true;
}
inline bool take_narrowing(const Step& s, Slots& slots) {
  const auto store = [&](Node::Kind kind, v16i x) { note(kind, x.node, -1, -1, s.c); };
  switch (s.dtype) {
    case ORR_BOOL: store(Node::STORE_U8, as_int(slots.load(s.a)) & splat_int(1)); break;
    case ORR_U8: store(Node::STORE_U8, slots.load_int(s.a)); break;
    case ORR_I32: store(Node::STORE, slots.load_int(s.a)); break;
    case ORR_F8_E4M3: store(Node::STORE_U8, to_e4m3(slots.load(s.a))); break;
    case ORR_F8_E5M2: store(Node::STORE_U8, to_e5m2(slots.load(s.a))); break;
    default: {
      const v16w x = slots.load_wide(s.a);
      both([&](int h) { return note_wide(Node::STORE, of(x, h), -1, -1, s.c, h); });
    }
  }
  return true;
}

// The number of each word, as philox.h has it for lanes that compute.
inline v16f uniform(v16i word) {
  return to_float(shift_right(word, 8)) * splat(1.0f / 16777216.0f);
}

// In f32; the interpreter makes those of doubles.
inline bool take_random(const Step& s, Slots& slots) {
  if (s.dtype == ORR_F64) return false;
  if (!slots.is_uniform(s.a) || !slots.is_uniform(s.b) || !slots.is_uniform(s.d)) return false;
  const v16i words = {pointwise::note_random({s.a, s.b, s.d, uint32_t(s.imm)})};
  slots.set(s.c, uniform(words));
  return true;
}

}  // namespace orr_cpu::ORR_ISA
