// SPDX-License-Identifier: Apache-2.0
#include "csv_rows.h"

#include <algorithm>

#include "refuse.h"

namespace data {

CsvRows::CsvRows(std::string text, std::string label)
    : text_(std::move(text)), label_(std::move(label)) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a mark that says UTF-8
}

bool CsvRows::next(std::vector<std::string>& values) {
  values.clear();
  while (at_ < text_.size() && at_line_end()) end_line();
  if (at_ == text_.size()) return false;
  row_line_ = line_;
  values.push_back(value());
  while (!at_line_end()) {
    ++at_;  // a comma
    values.push_back(value());
  }
  end_line();
  return true;
}

// Ends at a comma or where the line ends.
std::string CsvRows::value() {
  if (at_ < text_.size() && text_[at_] == '"') return quoted();
  const size_t begin = at_;
  at_ = std::min(text_.find_first_of(",\r\n", at_), text_.size());
  return text_.substr(begin, at_ - begin);
}

std::string CsvRows::quoted() {
  std::string inside;
  const int64_t begin = line_;
  for (++at_;;) {
    const size_t quote = text_.find('"', at_);
    if (quote == text_.npos)
      refuse(label_, ": line ", begin,
             ": a quote is not closed; close it, or double it inside of a value");
    line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                        text_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
    inside.append(text_, at_, quote - at_);
    at_ = quote + 1;
    if (at_ == text_.size() || text_[at_] != '"') break;
    inside += text_[at_++];
  }
  if (!at_line_end() && text_[at_] != ',')
    refuse(label_, ": line ", line_, ": a closing quote is followed by '", text_[at_],
           "'; double quotes inside of a value");
  return inside;
}

void CsvRows::end_line() {
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size() && text_[at_] == '\n') ++at_;
  ++line_;
}

}  // namespace data
