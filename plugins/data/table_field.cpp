// SPDX-License-Identifier: Apache-2.0
#include "table_field.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "refuse.h"

namespace data {
namespace {

const Kind& kind_of(const std::string& name) {
  static const Kind kinds[] = {
      {"f32", ORR_F32, "<f4", 4, true},   {"f64", ORR_F64, "<f8", 8, true},
      {"bf16", ORR_BF16, "<f8", 8, true}, {"f16", ORR_F16, "<f8", 8, true},
      {"i32", ORR_I32, "<i4", 4, false},  {"i64", ORR_I64, "<i8", 8, false},
      {"u8", ORR_U8, "|u1", 1, false},    {"bool", ORR_BOOL, "|b1", 1, false}};
  for (const Kind& kind : kinds)
    if (name == kind.name) return kind;
  refuse("unknown dtype '", name, "': one of f32, f64, bf16, f16, i32, i64, u8, bool");
}

// Whether it has digits alone, and more of them than an f32 holds: 24 bits.
bool is_rounded_by_f32(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  uint64_t size = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (at != text.data() + text.size() || error == std::errc::invalid_argument) return false;
  return error != std::errc() || (size && size >> std::countr_zero(size) >= 1 << 24);
}

[[noreturn]] void refuse_narrow(const ValuePlace& place, std::string_view value, const Kind& kind) {
  refuse(place.text(), ": the value ", value, " does not fit into ", kind.name,
         "; ask for a wider dtype");
}

void expect(bool good, const ValuePlace& place, std::string_view text, const char* expected) {
  if (!good)
    refuse(place.text(), " has '", text.substr(0, 40), "', ", expected,
           " expected; correct it, or give dtypes: 'class' numbers texts, 'text' keeps them");
}

}  // namespace

std::vector<TableField> table_fields(const orr::DataOptions& options, const std::string& format,
                                     const std::string& path) {
  std::vector<TableField> fields;
  for (int i = 1;; ++i) {
    const std::string at = "fields." + std::to_string(i) + ".";
    const std::string name = options.text(at + "name", "");
    if (name.empty()) break;
    const std::string dtype = options.text(at + "dtype", "");
    const bool is_class = dtype == "class", is_text = dtype == "text", is_free = dtype.empty();
    fields.push_back({name, options.texts(at + "columns"), options.integer(at + "list", 0) != 0,
                      is_class, is_text, is_free,
                      kind_of(is_class  ? "i32"
                              : is_text ? "u8"
                              : is_free ? "f32"
                                        : dtype)});
  }
  if (fields.empty()) refuse(format, ": no fields; write {x = {\"a\", \"b\"}, y = \"c\"}");
  if (std::count_if(fields.begin(), fields.end(), [](auto& field) { return field.is_class; }) > 1)
    refuse(path, ": several fields are classes; a dataset has one, make others numbers");
  for (const TableField& field : fields) {
    if (field.columns.empty())
      refuse(format, ": '", field.name, "' has no columns; give at least one");
    if (field.takes_text() && field.columns.size() > 1)
      refuse(format, ": '", field.name, "' has ", field.columns.size(), " columns: a ",
             field.is_class ? "class" : "text", " is of one");
  }
  return fields;
}

std::string ValuePlace::text() const {
  return path + ": line " + std::to_string(line) + ": " + what + " '" + name + "'";
}

void FieldValues::add_number(std::string_view text, const ValuePlace& place) {
  const char *begin = text.data(), *end = begin + text.size();
  if (field_.kind.real) {
    double value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    expect(error == std::errc() && at == end && std::isfinite(value), place, text, "a number");
    if (field_.exact && is_rounded_by_f32(text))
      refuse(place.text(), ": f32 would round the whole number ", text, "; dtypes = {", field_.name,
             " = \"i64\"} or \"f64\" keeps it, \"f32\" rounds it");
    if (field_.kind.bytes == 8) return keep(value);
    if (std::isinf(static_cast<float>(value))) refuse_narrow(place, text, field_.kind);
    return keep(static_cast<float>(value));
  }
  int64_t value = 0;
  const auto [at, error] = std::from_chars(begin, end, value);
  expect(error == std::errc() && at == end, place, text, "a whole number");
  if (!keep_whole(value)) refuse_narrow(place, text, field_.kind);
}

void FieldValues::add_text(std::string_view text) {
  if (field_.is_class) {
    texts_.emplace_back(text);
    return;
  }
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  bytes_.insert(bytes_.end(), begin, begin + text.size());
  ends_.push_back(bytes_.size());
}

Column FieldValues::finish_texts(const std::string& path) {
  uint64_t longest = 1, before = 0;
  for (const uint64_t end : ends_) longest = std::max(longest, end - std::exchange(before, end));
  return {{field_.name, {static_cast<int64_t>(longest)}, field_.kind.elements, field_.kind.dtype},
          std::make_shared<Bytes>(std::move(bytes_), path),
          0,
          0,
          static_cast<size_t>(longest),
          std::move(ends_)};
}

Column FieldValues::finish(std::vector<int64_t> dims, const std::string& path,
                           std::vector<std::string>& classes) {
  if (field_.is_text) return finish_texts(path);
  if (field_.is_class) {
    const std::set<std::string> sorted(texts_.begin(), texts_.end());
    classes.assign(sorted.begin(), sorted.end());
    for (const std::string& text : texts_)
      keep(static_cast<int32_t>(std::lower_bound(classes.begin(), classes.end(), text) -
                                classes.begin()));
  }
  size_t bytes = field_.kind.bytes;
  for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  return {{field_.name, std::move(dims), field_.kind.elements, field_.kind.dtype},
          std::make_shared<Bytes>(std::move(bytes_), path),
          0,
          bytes,
          bytes};
}

// false: it does not fit.
bool FieldValues::keep_whole(int64_t value) {
  switch (field_.kind.dtype) {
    case ORR_I32: return std::in_range<int32_t>(value) && (keep(static_cast<int32_t>(value)), true);
    case ORR_U8: return std::in_range<uint8_t>(value) && (keep(static_cast<uint8_t>(value)), true);
    case ORR_BOOL: return keep(static_cast<uint8_t>(value != 0)), true;
    default: return keep(value), true;
  }
}

template <class T>
void FieldValues::keep(T value) {
  bytes_.resize(bytes_.size() + sizeof value);
  std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
}

}  // namespace data
