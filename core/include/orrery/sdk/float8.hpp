// SPDX-License-Identifier: Apache-2.0
//
// Numbers of eight bits, ORR_F8_E4M3 and ORR_F8_E5M2 (types.h), one at a time: what a byte stands
// for, and the rounding of a float to nearest even (ops.h, EIGHT BITS). A NaN keeps its sign.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace orr {

struct F8E4M3 {
  uint8_t bits;
};
struct F8E5M2 {
  uint8_t bits;
};

namespace float8 {

// The float of `fraction` bits after the point, with this exponent's bias.
inline float widened(uint8_t bits, int fraction, int bias) {
  const int exponent = (bits & 0x7f) >> fraction, steps = bits & ((1 << fraction) - 1);
  const float size = exponent
                         ? std::ldexp(float(steps + (1 << fraction)), exponent - bias - fraction)
                         : std::ldexp(float(steps), 1 - bias - fraction);
  return std::copysign(size, bits & 0x80 ? -1.0f : 1.0f);
}

// The same number of float's bits as a byte, rounded; the sign is left out. A number below the
// smallest normal one is a multiple of the smallest step: one more in front of the fraction's bits
// is the smallest normal number.
inline uint32_t rounded(float size, int fraction, int bias) {
  const uint32_t bits = std::bit_cast<uint32_t>(size), dropped = uint32_t(23 - fraction);
  if (size < std::ldexp(1.0f, 1 - bias))
    return uint32_t(std::nearbyint(std::ldexp(size, bias - 1 + fraction)));
  const uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  return (bits + half - (uint32_t(127 - bias) << 23)) >> dropped;
}

inline uint8_t sign_of(float x) { return std::signbit(x) ? 0x80 : 0; }

}  // namespace float8

inline float e4m3_to_f32(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f)
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), bits & 0x80 ? -1.0f : 1.0f);
  return float8::widened(bits, 3, 7);
}

inline float e5m2_to_f32(uint8_t bits) {
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if ((bits & 0x7f) > 0x7c) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  if ((bits & 0x7f) == 0x7c) return std::copysign(std::numeric_limits<float>::infinity(), sign);
  return float8::widened(bits, 2, 15);
}

inline uint8_t f32_to_e4m3(float x) {
  const float size = std::fabs(x);
  const uint8_t sign = float8::sign_of(x);
  if (!(size <= 464)) return sign | 0x7f;  // half a step above 448 rounds to even, which is 448
  return uint8_t(sign | float8::rounded(size, 3, 7));
}

inline uint8_t f32_to_e5m2(float x) {
  const float size = std::fabs(x);
  const uint8_t sign = float8::sign_of(x);
  if (size != size) return sign | 0x7e;
  if (size >= 61440) return sign | 0x7c;  // half a step above 57,344
  return uint8_t(sign | float8::rounded(size, 2, 15));
}

}  // namespace orr
