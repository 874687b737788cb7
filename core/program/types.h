// SPDX-License-Identifier: Apache-2.0
//
// The small types of a program: shapes, attributes, and places in the user's script.
#pragma once

#include <orrery/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace orrery {

using Dims = std::vector<int64_t>;
constexpr int32_t kNone = -1;  // no value, op or dim

// A static shape and an element type.
struct Type {
  int32_t dtype = ORR_F32;
  Dims dims;

  int64_t elements() const;
  uint64_t bytes() const { return static_cast<uint64_t>(elements() * orr_dtype_bytes(dtype)); }
  bool operator==(const Type&) const = default;
};

// `dims` with the dim at index `dim` replaced by the dims `by`.
Dims with_dim(Dims dims, size_t dim, const Dims& by);

const char* dtype_name(int32_t dtype);             // "f32"
int32_t dtype_from_name(const std::string& name);  // 0 if unknown
bool is_real(int32_t dtype);                       // f32, f64, bf16, f16
std::string to_string(const Dims& dims);           // "[4,64,128]"
std::string to_string(const Type& type);           // "f32[4,64,128]"

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attrs = std::map<std::string, Attr>;

int64_t attr_int(const Attrs& attrs, const std::string& name, int64_t fallback);
double attr_real(const Attrs& attrs, const std::string& name, double fallback);
std::string attr_text(const Attrs& attrs, const std::string& name, const std::string& fallback);
Dims attr_ints(const Attrs& attrs, const std::string& name);

// The place in the user's script and model where something was made.
struct Site {
  std::string region;  // module path: "GPT.blocks.1.mlp.3"
  std::string line;    // "gpt.lua:20"

  // "gpt.lua:20: GPT.blocks.1.mlp.3: " as a prefix for messages; parts that are empty are left out.
  std::string prefix() const;
};

}  // namespace orrery
