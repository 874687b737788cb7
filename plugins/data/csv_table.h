// SPDX-License-Identifier: Apache-2.0
//
// A file of text that names columns in its first line, row by row. It may be packed by gzip or
// zstd.
#pragma once

#include "csv_rows.h"

namespace data {

class CsvTable {
 public:
  // Throws Error for a file that is empty, or of another format.
  explicit CsvTable(const std::string& path);

  const std::string& path() const { return path_; }
  // Where a column is in a row. Throws Error unless exactly one has this name.
  size_t place(const std::string& column) const;
  // The next row; false at the end. Throws Error unless it has a value for each column, and at the
  // end unless there was a row.
  bool next(std::vector<std::string>& row);
  int64_t line() const { return rows_.line(); }  // where the row began, from 1
  int64_t count() const { return count_; }       // of rows so far

 private:
  const std::string path_;
  CsvRows rows_;
  std::vector<std::string> header_;
  int64_t count_ = 0;
};

// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace data
