// SPDX-License-Identifier: Apache-2.0
#include "store/stored.h"
#include "program/eight_bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "program/elements.h"

namespace orrery {
namespace {

// In the order of the enumeration.
constexpr std::array<StoredKind, 15> kKinds = {{
    {Stored::boolean, 1, ORR_BOOL, "bool", "b1", "BOOL"},
    {Stored::u8, 1, ORR_U8, "u8", "u1", "U8"},
    {Stored::i8, 1, ORR_I32, "i8", "i1", "I8"},
    {Stored::u16, 2, ORR_I32, "u16", "u2", "U16"},
    {Stored::i16, 2, ORR_I32, "i16", "i2", "I16"},
    {Stored::u32, 4, ORR_I64, "u32", "u4", "U32"},
    {Stored::i32, 4, ORR_I32, "i32", "i4", "I32"},
    {Stored::u64, 8, ORR_I64, "u64", "u8", "U64"},
    {Stored::i64, 8, ORR_I64, "i64", "i8", "I64"},
    {Stored::f8_e5m2, 1, ORR_F32, "f8_e5m2", nullptr, "F8_E5M2"},
    {Stored::f8_e4m3, 1, ORR_F32, "f8_e4m3", nullptr, "F8_E4M3"},
    {Stored::bf16, 2, ORR_BF16, "bf16", "V2", "BF16"},
    {Stored::f16, 2, ORR_F16, "f16", "f2", "F16"},
    {Stored::f32, 4, ORR_F32, "f32", "f4", "F32"},
    {Stored::f64, 8, ORR_F64, "f64", "f8", "F64"},
}};

const StoredKind* find(std::string_view name, const char* StoredKind::*field) {
  for (const StoredKind& each : kKinds)
    if (each.*field && name == each.*field) return &each;
  return nullptr;
}

// Sign, exponent, fraction. E5M2 is f16 without its last eight bits; E4M3 has no infinities, and
// NaN where all bits but the sign are set.
float from_e5m2(uint8_t bits) {
  const auto half = static_cast<uint16_t>(bits << 8);
  return static_cast<float>(read_element(ORR_F16, &half));
}

float from_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, fraction = bits & 7;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -9);
  return sign * std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
}

template <class T>
T load(const std::byte* from, bool swapped) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  if (swapped) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

// Whether a finite number stays finite, and what becomes a whole one is one.
template <class T>
bool fits(T value, int32_t dtype) {
  if (dtype == ORR_F64 || dtype == ORR_BOOL) return true;
  if (is_any_real(dtype)) {
    const double size = std::abs(static_cast<double>(value));
    const double infinite = dtype == ORR_F16       ? 65520  // from here on, when rounded
                            : dtype == ORR_BF16    ? 0x1p128 - 0x1p119
                            : dtype == ORR_F8_E4M3 ? 464 + 0x1p-16  // 464 itself becomes 448
                            : dtype == ORR_F8_E5M2 ? 61440
                                                   : 0x1p128 - 0x1p103;
    return !(size >= infinite) || std::isinf(size);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (value != std::trunc(value)) return false;
    if (dtype == ORR_U8) return value >= 0 && value < 256;
    const double most = dtype == ORR_I32 ? 0x1p31 : 0x1p63;
    return value >= -most && value < most;
  } else {
    if (dtype == ORR_U8) return std::in_range<uint8_t>(value);
    return dtype == ORR_I32 ? std::in_range<int32_t>(value) : std::in_range<int64_t>(value);
  }
}

// One place to look at for every element type T that C++ has; `get(place)` reads one of any kind.
template <class T, class Get>
void convert(const Elements& e, size_t count, int32_t dtype, std::byte* to,
             const std::string& label, Get&& get) {
  const auto bytes = static_cast<size_t>(orr_dtype_bytes(dtype));
  const auto divisor = static_cast<float>(e.divisor);
  for (size_t i = 0; i < count; ++i, to += bytes) {
    const T value = get(i);
    if ((dtype != ORR_F32 || std::is_same_v<T, double>)&&!fits(value, dtype))
      fail(ORR_INVALID, "{}: the value {} does not fit into {}; ask for a wider dtype", label,
           value, dtype_name(dtype));
    if (dtype == ORR_F32) {
      const float real = static_cast<float>(value) / divisor;
      std::memcpy(to, &real, sizeof real);
      continue;
    }
    if (dtype == ORR_I64) {
      const auto whole = static_cast<int64_t>(value);
      std::memcpy(to, &whole, sizeof whole);
    } else {
      const auto number = static_cast<double>(value);
      write_element(dtype, to, is_any_real(dtype) ? number / e.divisor : number);
    }
  }
}

}  // namespace

const StoredKind& stored_kind(Stored kind) { return kKinds[static_cast<size_t>(kind)]; }

const StoredKind* stored_by_name(std::string_view name) { return find(name, &StoredKind::name); }

std::optional<Elements> elements_by_numpy(std::string_view descr) {
  const bool swapped = descr.starts_with('>');
  if (descr.find_first_of("<>|=") == 0) descr.remove_prefix(1);
  const StoredKind* kind = find(descr == "bfloat16" ? "V2" : descr, &StoredKind::numpy);
  return kind ? std::optional<Elements>({kind->kind, swapped}) : std::nullopt;
}

const StoredKind* stored_by_safetensors(std::string_view name) {
  return find(name, &StoredKind::safetensors);
}

Stored stored_as(int32_t dtype) { return find(dtype_name(dtype), &StoredKind::name)->kind; }

bool same_bytes(const Elements& e, int32_t dtype) {
  const StoredKind& kind = stored_kind(e.kind);
  return kind.dtype == dtype && kind.bytes == orr_dtype_bytes(dtype) && e.kind != Stored::u64 &&
         e.divisor == 1 && (!e.swapped || kind.bytes == 1);
}

void convert_elements(const Elements& e, const std::byte* from, size_t count, int32_t dtype,
                      std::byte* to, const std::string& label) {
  const StoredKind& kind = stored_kind(e.kind);
  const auto size = static_cast<size_t>(kind.bytes);
  if (same_bytes(e, dtype)) {
    if (count) std::memcpy(to, from, count * size);
    return;
  }
  const auto plain = [&]<class T>(T) {
    convert<T>(e, count, dtype, to, label,
               [&](size_t i) { return load<T>(from + i * sizeof(T), e.swapped); });
  };
  const auto small = [&](auto real) {
    convert<float>(e, count, dtype, to, label, [&](size_t i) { return real(from + i * size); });
  };
  switch (e.kind) {
    case Stored::boolean:
    case Stored::u8: return plain(uint8_t{});
    case Stored::i8: return plain(int8_t{});
    case Stored::u16: return plain(uint16_t{});
    case Stored::i16: return plain(int16_t{});
    case Stored::u32: return plain(uint32_t{});
    case Stored::i32: return plain(int32_t{});
    case Stored::u64: return plain(uint64_t{});
    case Stored::i64: return plain(int64_t{});
    case Stored::f32: return plain(float{});
    case Stored::f64: return plain(double{});
    case Stored::f8_e5m2:
      return small([](const std::byte* at) { return from_e5m2(static_cast<uint8_t>(*at)); });
    case Stored::f8_e4m3:
      return small([](const std::byte* at) { return from_e4m3(static_cast<uint8_t>(*at)); });
    case Stored::bf16:
    case Stored::f16:
      return small([&](const std::byte* at) {
        const auto bits = load<uint16_t>(at, e.swapped);
        return static_cast<float>(read_element(kind.dtype, &bits));
      });
  }
}

}  // namespace orrery
