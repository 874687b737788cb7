// SPDX-License-Identifier: Apache-2.0
#include "csv_fields.h"

namespace data {
namespace {

// One of the fields while the table is read, and the places of its columns.
class Reading {
 public:
  Reading(const TableField& field, const CsvTable& table) : values_(field), path_(table.path()) {
    for (const std::string& column : field.columns) places_.push_back(table.place(column));
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

}  // namespace

std::unique_ptr<Rows> read_fields(
    CsvTable& table, const std::vector<TableField>& fields,
    const std::function<void(const std::vector<std::string>& row)>& see) {
  std::vector<Reading> reading;
  for (const TableField& field : fields) reading.emplace_back(field, table);
  for (std::vector<std::string> row; table.next(row);) {
    for (Reading& each : reading) each.add(row, table.line());
    see(row);
  }
  std::vector<std::string> classes;
  std::vector<Column> columns;
  for (Reading& each : reading) columns.push_back(each.finish(classes));
  auto rows = std::make_unique<Rows>(std::move(columns), table.count());
  rows->classes = std::move(classes);
  return rows;
}

}  // namespace data
