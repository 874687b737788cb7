// SPDX-License-Identifier: Apache-2.0
//
// Fields of tables whose values are texts of numbers, or texts that are classes: how scripts ask
// for them, and their values in memory. The option `fields` is a list of
//   name     of the field
//   columns  a list of names
//   list     true: one column gives [1], else a number alone; several always give a list
//   dtype    "f32", ...; "class": texts, each the number of its text among all sorted; "text":
//            their bytes, with zeros up to the longest; without it f32, and a whole number that f32
//            would round is refused
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rows.h"

namespace data {

// What a value is kept as.
struct Kind {
  const char* name;
  int32_t dtype;
  const char* elements;
  size_t bytes;
  bool real;
};

struct TableField {
  std::string name;
  std::vector<std::string> columns;
  bool is_list, is_class, is_text;
  bool exact;  // whole numbers that the kind rounds are refused
  const Kind& kind;

  bool takes_text() const { return is_class || is_text; }
};

// Throws Error where there are none, or several classes; `format` begins messages.
std::vector<TableField> table_fields(const orr::DataOptions& options, const std::string& format,
                                     const std::string& path);

// Where a value stands, for messages: "table.csv: line 3: column 'a'".
struct ValuePlace {
  const std::string& path;
  int64_t line;
  const char* what;  // "column"
  const std::string& name;

  std::string text() const;
};

// The values of a field while its table is read.
class FieldValues {
 public:
  explicit FieldValues(const TableField& field) : field_(field) {}
  const TableField& field() const { return field_; }

  void add_text(std::string_view text);
  // Throws Error for a text that is no number, or does not fit.
  void add_number(std::string_view text, const ValuePlace& place);
  // Texts become numbers once all are known; `classes` gets them. `dims` are those of a sample.
  Column finish(std::vector<int64_t> dims, const std::string& path,
                std::vector<std::string>& classes);

 private:
  bool keep_whole(int64_t value);
  template <class T>
  void keep(T value);
  Column finish_texts(const std::string& path);

  const TableField& field_;
  std::vector<std::string> texts_;  // of classes
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> ends_;  // of texts among them
};

}  // namespace data
