// SPDX-License-Identifier: Apache-2.0
//
// The small types of a program: shapes, attributes, and places in the user's script.
#pragma once

#include <orrery/types.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/name.h"
#include "base/short_list.h"

namespace orrery {

using Dims = ShortList<int64_t, 4>;
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

using Attr = std::variant<int64_t, double, std::string, Dims>;

// What an op has beside its inputs, by name, in the order of names. Copies share their memory, so
// that programs can be copied; an op has few attributes, and they change rarely.
class Attrs {
 public:
  using Item = std::pair<Name, Attr>;
  Attrs() = default;
  Attrs(std::initializer_list<Item> items);

  const Attr* find(std::string_view name) const;  // null: there is none
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(const Name& name, Attr value);
  void erase(std::string_view name);
  const Item* begin() const { return items_ ? items_->data() : nullptr; }
  const Item* end() const { return items_ ? items_->data() + items_->size() : nullptr; }
  bool operator==(const Attrs& other) const;

 private:
  std::shared_ptr<const std::vector<Item>> items_;  // null: none
};

int64_t attr_int(const Attrs& attrs, std::string_view name, int64_t fallback);
double attr_real(const Attrs& attrs, std::string_view name, double fallback);
std::string attr_text(const Attrs& attrs, std::string_view name, const std::string& fallback);
Dims attr_ints(const Attrs& attrs, std::string_view name);

// The place in the user's script and model where something was made.
struct Site {
  Name region = {};  // module path: "GPT.blocks.1.mlp.3"
  Name line = {};    // "gpt.lua:20"

  // "gpt.lua:20: GPT.blocks.1.mlp.3: " as a prefix for messages; parts that are empty are left out.
  std::string prefix() const;
};

}  // namespace orrery
