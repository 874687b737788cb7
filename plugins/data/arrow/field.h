// SPDX-License-Identifier: Apache-2.0
//
// What a field of every sample is made of: columns of a table.
#pragma once

#include <optional>
#include <orrery/sdk/data.hpp>
#include <string>
#include <vector>

#include "cells.h"
#include "table.h"

namespace data {

// What a script asks for. An entry of the option `fields` has
//   name     of the field
//   columns  a list of names
//   list     true: one column of numbers gives [1], else a number alone; several always give a list
//   as       "text", "class" or "image", instead of what the type of the column says
//   pad      a number that shorter lists are filled up with
//   null     a number that stands for values that are missing
struct AskedField {
  std::string name;
  std::vector<std::string> columns;
  bool is_list = false;
  std::string as;
  std::optional<double> pad, null;
};
std::vector<AskedField> asked_fields(const orr::DataOptions& options, const std::string& path);

class ColumnField {
 public:
  enum class What { numbers, bytes, classes, image };

  // `first`: the number of the field's first column in the table; `size`: the edge of images.
  ColumnField(const AskedField& asked, const ColumnTable& table, size_t first, int64_t size);

  const AskedField& asked() const { return asked_; }
  What what() const { return what_; }
  // Whether the dims, or the names of classes, are known only when all rows have been looked at.
  bool must_measure() const;
  void measure(const Arrays& columns, size_t chunk);
  // What the host is told. `classes` gets the names of classes.
  orr::DataField finish(std::vector<std::string>& classes);
  void write(const Arrays& columns, const RowPlace& place, std::byte* to) const;

 private:
  const arrow::Field& column() const { return *table_.column(first_); }
  void find_numbers();
  void measure_list(const arrow::Array& array, int64_t row, size_t depth, const RowPlace& place);
  void write_list(const arrow::Array& array, int64_t row, size_t depth, const RowPlace& place,
                  std::byte*& to) const;
  void write_one(const arrow::Array& array, int64_t row, const RowPlace& place,
                 std::byte*& to) const;
  void write_image(const arrow::Array& array, const RowPlace& place, std::byte* to) const;
  std::string where(const RowPlace& place) const;
  void fill(const std::string& number, size_t count, std::byte*& to) const;
  std::string converted(const char* what, const std::optional<double>& number) const;
  [[noreturn]] void refuse_null(const RowPlace& place) const;

  AskedField asked_;
  const ColumnTable& table_;
  size_t first_;
  int64_t size_;
  What what_ = What::numbers;
  CellKind kind_{};
  std::vector<int64_t> dims_;      // of lists inside of each other; of bytes the longest
  std::vector<int64_t> shortest_;  // likewise
  std::string pad_, null_;         // numbers as the field has them; "": refused
  std::vector<std::string> classes_;
};

}  // namespace data
