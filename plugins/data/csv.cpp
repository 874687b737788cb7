// SPDX-License-Identifier: Apache-2.0
//
// Tables as text: a line of column names, then a line for each sample, values between commas. The
// table is kept in memory; its file may be packed by gzip or zstd. Fields are asked for as
// table_field.h says.
#include <algorithm>

#include "csv_rows.h"
#include "formats.h"
#include "refuse.h"
#include "table_field.h"

namespace data {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// One of the fields while the table is read, and the places of its columns.
class Reading {
 public:
  Reading(const TableField& field, const std::vector<std::string>& header, const std::string& path)
      : values_(field), path_(path) {
    for (const std::string& column : field.columns) {
      const auto found = std::find(header.begin(), header.end(), column);
      if (found == header.end())
        refuse(path, ": there is no column '", column, "'; it has ", listed(header));
      if (std::find(found + 1, header.end(), column) != header.end())
        refuse(path, ": two columns are named '", column, "'; rename one");
      places_.push_back(static_cast<size_t>(found - header.begin()));
    }
  }

  void add(const std::vector<std::string>& row, int64_t line) {
    const TableField& field = values_.field();
    for (size_t i = 0; i < places_.size(); ++i) {
      if (field.takes_text())
        values_.add_text(row[places_[i]]);
      else
        values_.add_number(trimmed(row[places_[i]]), {path_, line, "column", field.columns[i]});
    }
  }

  Column finish(std::vector<std::string>& classes) {
    std::vector<int64_t> dims;
    if (values_.field().is_list || places_.size() != 1)
      dims = {static_cast<int64_t>(places_.size())};
    return values_.finish(dims, path_, classes);
  }

 private:
  FieldValues values_;
  const std::string& path_;
  std::vector<size_t> places_;
};

// Reads all lines below the names; returns how many there are.
int64_t read_rows(CsvRows& rows, size_t columns, std::vector<Reading>& reading,
                  const std::string& path) {
  std::vector<std::string> row;
  int64_t samples = 0;
  for (; rows.next(row); ++samples) {
    if (row.size() != columns)
      refuse(path, ": line ", rows.line(), ": ", row.size(), " values, the first line names ",
             columns, " columns");
    for (Reading& each : reading) each.add(row, rows.line());
  }
  if (samples == 0) refuse(path, ": there is no line below the column names");
  return samples;
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::vector<TableField> fields = table_fields(options, "csv", path);
  const BytesPtr bytes = open_unpacked(path);
  refuse_formats(*bytes, "a table as text: save it as .csv");
  const std::vector<std::byte> file = bytes->all();
  CsvRows rows(std::string(reinterpret_cast<const char*>(file.data()), file.size()), path);
  std::vector<std::string> header, classes;
  if (!rows.next(header)) refuse(path, ": the file is empty");
  for (std::string& name : header) name = std::string(trimmed(name));
  std::vector<Reading> reading;
  for (const TableField& field : fields) reading.emplace_back(field, header, path);
  const int64_t samples = read_rows(rows, header.size(), reading, path);
  std::vector<Column> columns;
  for (Reading& each : reading) columns.push_back(each.finish(classes));
  auto table = std::make_unique<Rows>(std::move(columns), samples);
  table->classes = std::move(classes);
  return table;
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "csv", "0.1.0", "Tables as text, values between commas",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
