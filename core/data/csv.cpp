// SPDX-License-Identifier: Apache-2.0
#include "data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text_file.h"
#include "data/columns.h"
#include "data/csv_rows.h"
#include "program/elements.h"

namespace orrery {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// One of the fields while the table is read: the places of its columns, and its bytes so far.
class Reading {
 public:
  Reading(const CsvField& field, const std::vector<std::string>& header, const std::string& path)
      : field_(field), path_(path) {
    for (const std::string& column : field.columns) {
      const auto found = std::find(header.begin(), header.end(), column);
      if (found == header.end())
        fail(ORR_INVALID, "{}: there is no column '{}'; it has {}", path, column,
             fmt::join(header, ", "));
      if (std::find(found + 1, header.end(), column) != header.end())
        fail(ORR_INVALID, "{}: two columns are named '{}'; rename one", path, column);
      places_.push_back(static_cast<size_t>(found - header.begin()));
    }
  }

  void add(const std::vector<std::string>& row, int64_t line) {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (field_.is_class)
        texts_.push_back(row[places_[i]]);
      else
        add_number(trimmed(row[places_[i]]), line, field_.columns[i]);
    }
  }

  // Texts become numbers once all are known; `classes` gets them.
  Column finish(std::vector<std::string>& classes) {
    if (field_.is_class) {
      const std::set<std::string> sorted(texts_.begin(), texts_.end());
      classes.assign(sorted.begin(), sorted.end());
      for (const std::string& text : texts_)
        add_element(static_cast<double>(std::lower_bound(classes.begin(), classes.end(), text) -
                                        classes.begin()));
    }
    Type type{field_.dtype, {}};
    if (field_.is_list) type.dims = {static_cast<int64_t>(places_.size())};
    return {{field_.name, type},
            std::make_shared<const std::vector<std::byte>>(std::move(bytes_)),
            {stored_as(type.dtype)},
            0,
            type.bytes()};
  }

 private:
  void add_number(std::string_view text, int64_t line, const std::string& column) {
    const auto refuse = [&](const char* expected) {
      fail(ORR_INVALID,
           "{}: line {}: column '{}' has '{}', {} expected; correct it, or give dtypes", path_,
           line, column, text.substr(0, 40), expected);
    };
    const char *begin = text.data(), *end = begin + text.size();
    if (is_real(field_.dtype)) {
      double value = 0;
      const auto [at, error] = std::from_chars(begin, end, value);
      if (error != std::errc() || at != end || !std::isfinite(value)) refuse("a number");
      return add_element(value);
    }
    int64_t value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || at != end) refuse("a whole number");
    bytes_.resize(bytes_.size() + size());
    convert_elements({Stored::i64}, reinterpret_cast<const std::byte*>(&value), 1, field_.dtype,
                     bytes_.data() + bytes_.size() - size(),
                     fmt::format("{}: line {}: column '{}'", path_, line, column));
  }

  void add_element(double value) {
    bytes_.resize(bytes_.size() + size());
    write_element(field_.dtype, bytes_.data() + bytes_.size() - size(), value);
  }

  size_t size() const { return static_cast<size_t>(orr_dtype_bytes(field_.dtype)); }

  const CsvField& field_;
  const std::string& path_;
  std::vector<size_t> places_;
  std::vector<std::string> texts_;
  std::vector<std::byte> bytes_;
};

class Table : public Columns {
 public:
  Table(std::vector<Column> columns, int64_t samples, std::vector<std::string> classes)
      : Columns(std::move(columns), samples) {
    classes_ = std::move(classes);
  }
};

}  // namespace

DatasetPtr csv_file(const std::string& path, const std::vector<CsvField>& fields) {
  CsvRows rows(read_text(path, path, ORR_INVALID), path);
  std::vector<std::string> header, row, classes;
  if (!rows.next(header)) fail(ORR_INVALID, "{}: the file is empty", path);
  for (std::string& name : header) name = std::string(trimmed(name));
  if (std::count_if(fields.begin(), fields.end(), [](auto& field) { return field.is_class; }) > 1)
    fail(ORR_INVALID, "{}: several fields are classes; a dataset has one, make others numbers",
         path);
  std::vector<Reading> reading;
  for (const CsvField& field : fields) reading.emplace_back(field, header, path);
  int64_t samples = 0;
  for (; rows.next(row); ++samples) {
    if (row.size() != header.size())
      fail(ORR_INVALID, "{}: line {}: {} values, the first line names {} columns", path,
           rows.line(), row.size(), header.size());
    for (Reading& each : reading) each.add(row, rows.line());
  }
  if (samples == 0) fail(ORR_INVALID, "{}: there is no line below the column names", path);
  std::vector<Column> columns;
  for (Reading& each : reading) columns.push_back(each.finish(classes));
  return std::make_shared<Table>(std::move(columns), samples, std::move(classes));
}

}  // namespace orrery
