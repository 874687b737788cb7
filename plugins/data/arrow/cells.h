// SPDX-License-Identifier: Apache-2.0
//
// The values of rows of a column: numbers, lists of them, texts and bytes.
#pragma once

#include <arrow/api.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace data {

// What an element of a field is written as.
struct CellKind {
  arrow::Type::type type;
  const char* elements;  // as NumPy names it
  size_t bytes;
};

// Null if the type is not one of numbers.
const CellKind* number_kind(const arrow::DataType& type);
// That holds the numbers of both, which are of different kinds. Null: unsigned ones of 64 bits and
// others.
const CellKind* common_kind(const CellKind& a, const CellKind& b);

// What extensions of Arrow's types, such as Hugging Face's matrices, are stored as.
const arrow::DataType& stored_type(const arrow::DataType& type);
bool is_list(const arrow::DataType& type);
bool is_text(const arrow::DataType& type);   // of UTF-8
bool is_bytes(const arrow::DataType& type);  // of any bytes

// The values of a list: those of `array` from `begin` to `end`.
struct ListPart {
  std::shared_ptr<arrow::Array> array;
  int64_t begin, end;
};
// REQUIRES: is_list of its type, and no null.
ListPart list_at(const arrow::Array& array, int64_t row);

// The text or bytes of a row. REQUIRES: its type has such, and no null.
std::string_view bytes_at(const arrow::Array& array, int64_t row);

// Whether the row is null, also by its dictionary.
bool is_null(const arrow::Array& array, int64_t row);

// Writes a number of a row. REQUIRES: no null.
void write_number(const arrow::Array& array, int64_t row, const CellKind& kind, std::byte* to);
// The bytes of a number of this kind; nothing if it does not fit.
std::optional<std::string> number_as(const CellKind& kind, double number);

}  // namespace data
