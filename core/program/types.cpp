// SPDX-License-Identifier: Apache-2.0
#include "program/types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace orrery {
namespace {

constexpr std::array<std::pair<int32_t, const char*>, 10> kDtypes = {{{ORR_F32, "f32"},
                                                                      {ORR_F64, "f64"},
                                                                      {ORR_BF16, "bf16"},
                                                                      {ORR_F16, "f16"},
                                                                      {ORR_I32, "i32"},
                                                                      {ORR_I64, "i64"},
                                                                      {ORR_U8, "u8"},
                                                                      {ORR_BOOL, "bool"},
                                                                      {ORR_F8_E4M3, "f8_e4m3"},
                                                                      {ORR_F8_E5M2, "f8_e5m2"}}};

template <class T>
const T* find(const Attrs& attrs, std::string_view name) {
  const Attr* found = attrs.find(name);
  return found ? std::get_if<T>(found) : nullptr;
}

}  // namespace

int64_t Type::elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Dims with_dim(Dims dims, size_t dim, const Dims& by) {
  dims.erase(dims.begin() + static_cast<long>(dim));
  dims.insert(dims.begin() + static_cast<long>(dim), by.begin(), by.end());
  return dims;
}

const char* dtype_name(int32_t dtype) {
  for (auto& [id, name] : kDtypes)
    if (id == dtype) return name;
  return "?";
}

int32_t dtype_from_name(const std::string& name) {
  for (auto& [id, text] : kDtypes)
    if (name == text) return id;
  return 0;
}

bool is_real(int32_t dtype) {
  return dtype == ORR_F32 || dtype == ORR_F64 || dtype == ORR_BF16 || dtype == ORR_F16;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string to_string(const Type& type) { return dtype_name(type.dtype) + to_string(type.dims); }

Attrs::Attrs(std::initializer_list<Item> items) {
  std::vector<Item> sorted(items);
  std::sort(sorted.begin(), sorted.end(),
            [](const Item& a, const Item& b) { return a.first.str() < b.first.str(); });
  items_ = std::make_shared<const std::vector<Item>>(std::move(sorted));
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& [known, value] : *this)
    if (known.str() == name) return &value;
  return nullptr;
}

void Attrs::set(const Name& name, Attr value) {
  std::vector<Item> items(begin(), end());
  const auto at = std::find_if(items.begin(), items.end(),
                               [&](const Item& i) { return i.first.str() >= name.str(); });
  if (at != items.end() && at->first == name)
    at->second = std::move(value);
  else
    items.emplace(at, name, std::move(value));
  items_ = std::make_shared<const std::vector<Item>>(std::move(items));
}

void Attrs::erase(std::string_view name) {
  if (!has(name)) return;
  std::vector<Item> items(begin(), end());
  std::erase_if(items, [&](const Item& i) { return i.first.str() == name; });
  items_ = std::make_shared<const std::vector<Item>>(std::move(items));
}

bool Attrs::operator==(const Attrs& other) const {
  return items_ == other.items_ || std::equal(begin(), end(), other.begin(), other.end());
}

int64_t attr_int(const Attrs& attrs, std::string_view name, int64_t fallback) {
  auto* v = find<int64_t>(attrs, name);
  return v ? *v : fallback;
}

double attr_real(const Attrs& attrs, std::string_view name, double fallback) {
  auto* v = find<double>(attrs, name);
  return v ? *v : fallback;
}

std::string attr_text(const Attrs& attrs, std::string_view name, const std::string& fallback) {
  auto* v = find<std::string>(attrs, name);
  return v ? *v : fallback;
}

Dims attr_ints(const Attrs& attrs, std::string_view name) {
  auto* v = find<Dims>(attrs, name);
  return v ? *v : Dims{};
}

std::string Site::prefix() const {
  std::string text;
  if (!line.empty()) text += line + ": ";
  if (!region.empty()) text += region + ": ";
  return text;
}

}  // namespace orrery
