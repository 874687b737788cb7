// SPDX-License-Identifier: Apache-2.0
//
// Numbers of eight bits in lanes: the floats that bytes stand for, rounding to nearest even, and
// the bytes of floats that are rounded. As in vmath.h with functions of simd.h alone, so that it is
// also translated. What the bits mean, and one number at a time: orrery/sdk/float8.hpp.
#pragma once

#include "vmath.h"

namespace orr_cpu::ORR_ISA {

// One of the two formats.
struct Eight {
  int dropped;       // bits of a float's fraction that it does not have
  int bias;          // what its exponent is smaller by than a float's
  float least;       // the smallest normal number
  float step;        // between the numbers below that
  float neighbours;  // a float whose neighbours are one step apart
};
inline constexpr Eight kE4M3{20, 120, 0x1p-6f, 0x1p-9f, 0x1p14f};
inline constexpr Eight kE5M2{21, 112, 0x1p-14f, 0x1p-16f, 0x1p7f};

ORR_INLINE v16f quiet_nan() { return as_float(splat_int(0x7fc00000)); }
ORR_INLINE v16f signed_as(v16f size, v16i sign) { return as_float(as_int(size) | sign); }

// `size`: the byte without its sign, which is no infinity and no NaN.
ORR_INLINE v16f widened(v16i size, const Eight& f) {
  const v16f small = to_float(size) * splat(f.step);
  const v16f normal = as_float(shift_left(size, f.dropped) + splat_int(f.bias << 23));
  return select(splat_int(1 << (23 - f.dropped)) > size, small, normal);
}
ORR_INLINE v16f from_e4m3(v16i byte) {
  const v16i size = byte & splat_int(0x7f);
  const v16f x = select(size == splat_int(0x7f), quiet_nan(), widened(size, kE4M3));
  return signed_as(x, shift_left(byte & splat_int(0x80), 24));
}
ORR_INLINE v16f from_e5m2(v16i byte) {
  const v16i size = byte & splat_int(0x7f);
  const v16f finite = select(size == splat_int(0x7c), infinity(), widened(size, kE5M2));
  const v16f x = select(size > splat_int(0x7c), quiet_nan(), finite);
  return signed_as(x, shift_left(byte & splat_int(0x80), 24));
}

// What is not too large.
ORR_INLINE v16f rounded_size(v16f size, const Eight& f) {
  const v16i bits = as_int(size), last = shift_right(bits, f.dropped) & splat_int(1);
  const v16i up = bits + splat_int((1 << (f.dropped - 1)) - 1) + last;
  const v16f normal = as_float(up & splat_int(-(1 << f.dropped)));
  const v16f small = size + splat(f.neighbours) - splat(f.neighbours);
  return select(size < splat(f.least), small, normal);
}
ORR_INLINE v16i sign_of(v16f x) { return as_int(x) & splat_int(INT32_MIN); }
ORR_INLINE v16f round_e4m3(v16f x) {
  const v16f size = abs(x);
  const v16f y = select(size <= splat(464.0f), rounded_size(size, kE4M3), quiet_nan());
  return signed_as(y, sign_of(x));
}
ORR_INLINE v16f round_e5m2(v16f x) {
  const v16f size = abs(x);
  const v16f large = select(is_nan(x), quiet_nan(), infinity());
  const v16f y = select(size < splat(61440.0f), rounded_size(size, kE5M2), large);
  return signed_as(y, sign_of(x));
}

ORR_INLINE v16i byte_of(v16f size, const Eight& f) {
  const v16i small = as_int(size + splat(f.neighbours)) - as_int(splat(f.neighbours));
  const v16i normal = shift_right(as_int(size) - splat_int(f.bias << 23), f.dropped);
  return select(size < splat(f.least), small, normal);
}
// REQUIRES: x is rounded.
ORR_INLINE v16i to_e4m3(v16f x) {
  const v16i size = select(is_nan(x), splat_int(0x7f), byte_of(abs(x), kE4M3));
  return size | shift_right(sign_of(x), 24);
}
ORR_INLINE v16i to_e5m2(v16f x) {
  const v16f size = abs(x);
  const v16i finite = select(size == infinity(), splat_int(0x7c), byte_of(size, kE5M2));
  return select(is_nan(x), splat_int(0x7e), finite) | shift_right(sign_of(x), 24);
}

}  // namespace orr_cpu::ORR_ISA
