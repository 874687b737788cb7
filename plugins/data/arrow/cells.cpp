// SPDX-License-Identifier: Apache-2.0
#include "cells.h"

#include <arrow/util/float16.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace data {
namespace {

using arrow::Type;

constexpr CellKind kKinds[] = {
    {Type::BOOL, "|b1", 1},       {Type::INT8, "|i1", 1},   {Type::UINT8, "|u1", 1},
    {Type::INT16, "<i2", 2},      {Type::UINT16, "<u2", 2}, {Type::INT32, "<i4", 4},
    {Type::UINT32, "<u4", 4},     {Type::INT64, "<i8", 8},  {Type::UINT64, "<u8", 8},
    {Type::HALF_FLOAT, "<f2", 2}, {Type::FLOAT, "<f4", 4},  {Type::DOUBLE, "<f8", 8}};

const CellKind& kind_of(Type::type type) {
  for (const CellKind& kind : kKinds)
    if (kind.type == type) return kind;
  return kKinds[0];
}

bool is_real(const CellKind& kind) { return kind.elements[1] == 'f'; }

template <class T>
std::byte* put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

template <class A>
auto value(const arrow::Array& array, int64_t row) {
  return static_cast<const A&>(array).Value(row);
}

// Calls visit(number) with a number of a row.
template <class Visit>
void visit_number(const arrow::Array& array, int64_t row, Visit&& visit) {
  switch (array.type_id()) {
    case Type::BOOL: return visit(int64_t{value<arrow::BooleanArray>(array, row)});
    case Type::INT8: return visit(int64_t{value<arrow::Int8Array>(array, row)});
    case Type::UINT8: return visit(int64_t{value<arrow::UInt8Array>(array, row)});
    case Type::INT16: return visit(int64_t{value<arrow::Int16Array>(array, row)});
    case Type::UINT16: return visit(int64_t{value<arrow::UInt16Array>(array, row)});
    case Type::INT32: return visit(int64_t{value<arrow::Int32Array>(array, row)});
    case Type::UINT32: return visit(int64_t{value<arrow::UInt32Array>(array, row)});
    case Type::INT64: return visit(value<arrow::Int64Array>(array, row));
    case Type::FLOAT: return visit(double{value<arrow::FloatArray>(array, row)});
    case Type::HALF_FLOAT:
      return visit(
          arrow::util::Float16::FromBits(value<arrow::HalfFloatArray>(array, row)).ToDouble());
    default: return visit(value<arrow::DoubleArray>(array, row));
  }
}

// The row of the values that a row of a dictionary's indices stands for.
int64_t dictionary_row(const arrow::DictionaryArray& array, int64_t row) {
  return array.GetValueIndex(row);
}

template <class T>
bool fits(double number) {
  return number == std::floor(number) &&
         number >= static_cast<double>(std::numeric_limits<T>::min()) &&
         number < std::ldexp(1.0, std::numeric_limits<T>::digits);
}

template <class T>
std::optional<std::string> whole_as(double number) {
  if (!fits<T>(number)) return {};
  const T value = static_cast<T>(number);
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

const CellKind* number_kind(const arrow::DataType& type) {
  for (const CellKind& kind : kKinds)
    if (kind.type == type.id()) return &kind;
  return nullptr;
}

const CellKind* common_kind(const CellKind& a, const CellKind& b) {
  if (a.type == b.type) return &a;
  if (a.type == Type::UINT64 || b.type == Type::UINT64) return nullptr;
  return &kind_of(is_real(a) || is_real(b) ? Type::DOUBLE : Type::INT64);
}

const arrow::DataType& stored_type(const arrow::DataType& type) {
  if (type.id() != Type::EXTENSION) return type;
  return stored_type(*static_cast<const arrow::ExtensionType&>(type).storage_type());
}

bool is_list(const arrow::DataType& type) {
  return type.id() == Type::LIST || type.id() == Type::LARGE_LIST ||
         type.id() == Type::FIXED_SIZE_LIST;
}

bool is_text(const arrow::DataType& type) {
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING;
}

bool is_bytes(const arrow::DataType& type) {
  return type.id() == Type::BINARY || type.id() == Type::LARGE_BINARY ||
         type.id() == Type::FIXED_SIZE_BINARY;
}

ListPart list_at(const arrow::Array& array, int64_t row) {
  const auto part = [row](const auto& list) -> ListPart {
    return {list.values(), list.value_offset(row), list.value_offset(row) + list.value_length(row)};
  };
  if (array.type_id() == Type::LIST) return part(static_cast<const arrow::ListArray&>(array));
  if (array.type_id() == Type::LARGE_LIST)
    return part(static_cast<const arrow::LargeListArray&>(array));
  return part(static_cast<const arrow::FixedSizeListArray&>(array));
}

std::string_view bytes_at(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case Type::DICTIONARY: {
      const auto& indices = static_cast<const arrow::DictionaryArray&>(array);
      return bytes_at(*indices.dictionary(), dictionary_row(indices, row));
    }
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY: return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
    case Type::FIXED_SIZE_BINARY:
      return static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(row);
    default: return static_cast<const arrow::BinaryArray&>(array).GetView(row);
  }
}

bool is_null(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) return true;
  if (array.type_id() != Type::DICTIONARY) return false;
  const auto& indices = static_cast<const arrow::DictionaryArray&>(array);
  return indices.dictionary()->IsNull(dictionary_row(indices, row));
}

void write_number(const arrow::Array& array, int64_t row, const CellKind& kind, std::byte* to) {
  if (kind.type == Type::BOOL) {
    put(static_cast<uint8_t>(value<arrow::BooleanArray>(array, row)), to);
  } else if (array.type_id() == kind.type) {
    const auto* values = array.data()->GetValues<uint8_t>(1, 0);
    std::memcpy(to, values + static_cast<size_t>(array.offset() + row) * kind.bytes, kind.bytes);
  } else {
    visit_number(array, row, [&](auto number) {
      if (kind.type == Type::INT64)
        put(static_cast<int64_t>(number), to);
      else
        put(static_cast<double>(number), to);
    });
  }
}

std::optional<std::string> number_as(const CellKind& kind, double number) {
  std::string bytes(kind.bytes, '\0');
  auto* to = reinterpret_cast<std::byte*>(bytes.data());
  switch (kind.type) {
    case Type::BOOL: return number == 0 || number == 1 ? whole_as<uint8_t>(number) : std::nullopt;
    case Type::INT8: return whole_as<int8_t>(number);
    case Type::UINT8: return whole_as<uint8_t>(number);
    case Type::INT16: return whole_as<int16_t>(number);
    case Type::UINT16: return whole_as<uint16_t>(number);
    case Type::INT32: return whole_as<int32_t>(number);
    case Type::UINT32: return whole_as<uint32_t>(number);
    case Type::INT64: return whole_as<int64_t>(number);
    case Type::UINT64: return whole_as<uint64_t>(number);
    case Type::FLOAT: put(static_cast<float>(number), to); return bytes;
    case Type::HALF_FLOAT: put(arrow::util::Float16(number).bits(), to); return bytes;
    default: put(number, to); return bytes;
  }
}

}  // namespace data
