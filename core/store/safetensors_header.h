// SPDX-License-Identifier: Apache-2.0
//
// The header of a safetensors file: JSON that gives every tensor's dtype, shape and place in the
// bytes that follow. Untrusted: everything is checked before anything is believed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/types.h"
#include "store/stored.h"

namespace orrery {

constexpr uint64_t kMostHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  Type type;                    // as the engine holds it
  uint64_t begin = 0, end = 0;  // bytes after the header
  Stored kind = Stored::u8;     // as the file does

  static SafetensorsEntry of_engine(std::string name, const Type& type, uint64_t begin) {
    return {std::move(name), type, begin, begin + type.bytes(), stored_as(type.dtype)};
  }
};

// Position of `dtype` in the order that writers sort by, descending: wide elements first.
int safetensors_order(int32_t dtype);

// The tensors by rising place: they fill [0, data_bytes) without hole or overlap and each is as
// long as its dtype and shape say. Otherwise throws Error, which begins with `label`. [any thread]
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                                       const std::string& label);

// The header's text for tensors that are written in this order, padded with spaces such that the
// tensors begin at a multiple of 8 bytes. Throws Error if a name is not UTF-8.
std::string render_safetensors_header(const std::vector<SafetensorsEntry>& entries);

}  // namespace orrery
