// SPDX-License-Identifier: Apache-2.0
//
// The rows of a CSV text, one after another (RFC 4180; lines may end with LF alone).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace data {

class CsvRows {
 public:
  // `label` begins messages.
  CsvRows(std::string text, std::string label);
  // The next row that is not empty; false at the end. Throws Error for quotes that do not match.
  bool next(std::vector<std::string>& values);
  int64_t line() const { return row_line_; }  // where the row began, from 1

 private:
  std::string value();
  std::string quoted();
  bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
  }
  void end_line();

  std::string text_, label_;
  size_t at_ = 0;
  int64_t line_ = 1, row_line_ = 1;
};

}  // namespace data
