// SPDX-License-Identifier: Apache-2.0
#include "program/elements.h"

#include <orrery/types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <orrery/sdk/float8.hpp>

namespace orrery {
namespace {

template <class T>
T load(const void* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

template <class T>
void store(void* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

float from_f16(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

uint16_t to_f16(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  const int exponent = size > 0 ? std::max(std::ilogb(size), -14) : -14;
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + steps));
}

uint16_t to_bf16(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

double read_element(int32_t dtype, const void* place) {
  switch (dtype) {
    case ORR_F32: return load<float>(place);
    case ORR_F64: return load<double>(place);
    case ORR_BF16: return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(place)) << 16);
    case ORR_F16: return from_f16(load<uint16_t>(place));
    case ORR_F8_E4M3: return orr::e4m3_to_f32(load<uint8_t>(place));
    case ORR_F8_E5M2: return orr::e5m2_to_f32(load<uint8_t>(place));
    case ORR_I32: return load<int32_t>(place);
    case ORR_I64: return static_cast<double>(load<int64_t>(place));
    default: return load<uint8_t>(place);
  }
}

void write_element(int32_t dtype, void* place, double value) {
  switch (dtype) {
    case ORR_F32: return store(place, static_cast<float>(value));
    case ORR_F64: return store(place, value);
    case ORR_BF16: return store(place, to_bf16(value));
    case ORR_F16: return store(place, to_f16(value));
    case ORR_F8_E4M3: return store(place, orr::f32_to_e4m3(static_cast<float>(value)));
    case ORR_F8_E5M2: return store(place, orr::f32_to_e5m2(static_cast<float>(value)));
    case ORR_I32: return store(place, static_cast<int32_t>(value));
    case ORR_I64: return store(place, static_cast<int64_t>(value));
    case ORR_BOOL: return store(place, static_cast<uint8_t>(value != 0));
    default: return store(place, static_cast<uint8_t>(value));
  }
}

bool fits(double number, int32_t dtype) {
  const auto whole = [&](double least, double end) {
    return number >= least && number < end && std::trunc(number) == number;
  };
  switch (dtype) {
    case ORR_I32: return whole(-0x1p31, 0x1p31);
    case ORR_I64: return whole(-0x1p63, 0x1p63);
    case ORR_U8: return whole(0, 256);
    case ORR_BOOL: return whole(0, 2);
    default: return true;
  }
}

}  // namespace orrery
