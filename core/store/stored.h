// SPDX-License-Identifier: Apache-2.0
//
// Elements as files of other programs hold them: more kinds than the engine computes with, and in
// either order of bytes. Each has a dtype of the engine that takes all its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "program/types.h"

namespace orrery {

enum class Stored : uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,  // as i64: a larger value is an error where it is read
  i64,
  f8_e5m2,
  f8_e4m3,
  bf16,
  f16,
  f32,
  f64
};

struct StoredKind {
  Stored kind;
  int64_t bytes;
  int32_t dtype;            // of the engine, that takes all values
  const char* name;         // "u16": in scripts and messages
  const char* numpy;        // "u2": a descr of .npy without its order of bytes; null if none
  const char* safetensors;  // "U16"
};

const StoredKind& stored_kind(Stored kind);
// Null if no kind has this name.
const StoredKind* stored_by_name(std::string_view name);
const StoredKind* stored_by_safetensors(std::string_view name);
// The kind whose elements are those of a dtype of the engine.
Stored stored_as(int32_t dtype);

struct Elements {
  Stored kind = Stored::u8;
  bool swapped = false;  // big-endian
  double divisor = 1;    // what each is divided by, where the result is real
};

// "<f4": the order of bytes, kind and size; bfloat16 is "<V2", as ml_dtypes writes it, or its name.
// Nothing for any other text.
std::optional<Elements> elements_by_numpy(std::string_view descr);

// Whether the bytes in a file are those of tensors of `dtype`.
bool same_bytes(const Elements& elements, int32_t dtype);

// Writes `count` elements as `dtype`. Throws Error, which begins with `label`, for a value that an
// integer of `dtype` cannot hold. [any thread]
void convert_elements(const Elements& elements, const std::byte* from, size_t count, int32_t dtype,
                      std::byte* to, const std::string& label);

}  // namespace orrery
