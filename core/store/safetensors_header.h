// SPDX-License-Identifier: Apache-2.0
//
// Parses and writes the header of a safetensors file: JSON that gives every tensor's dtype, shape
// and place in the bytes that follow. The file is not trusted: every field is checked.
#pragma once

#include <cstdint>
#include <map>
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

// The position of `dtype` in the order of the specification. Writers put the highest first.
int safetensors_order(int32_t dtype);

// The tensors in the order of their bytes. They fill [0, data_bytes) without gap or overlap, and
// each has the length of its dtype and shape; otherwise throws Error, which begins with `label`.
// [any thread]
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                                       const std::string& label);

// The header's text for tensors that are written in this order, padded with spaces such that the
// tensors begin at a multiple of 8 bytes. Throws Error if a name is not UTF-8.
using Metadata = std::map<std::string, std::string>;
std::string render_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                      const Metadata& metadata = {});

}  // namespace orrery
