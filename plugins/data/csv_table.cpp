// SPDX-License-Identifier: Apache-2.0
#include "csv_table.h"

#include <algorithm>

#include "bytes.h"
#include "formats.h"
#include "refuse.h"

namespace data {
namespace {

std::string text_of(const std::string& path) {
  const BytesPtr bytes = open_unpacked(path);
  refuse_formats(*bytes, "a table as text: save it as .csv");
  const std::vector<std::byte> file = bytes->all();
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

CsvTable::CsvTable(const std::string& path) : path_(path), rows_(text_of(path), path) {
  if (!rows_.next(header_)) refuse(path, ": the file is empty");
  for (std::string& name : header_) name = std::string(trimmed(name));
}

size_t CsvTable::place(const std::string& column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end())
    refuse(path_, ": there is no column '", column, "'; it has ", listed(header_));
  if (std::find(found + 1, header_.end(), column) != header_.end())
    refuse(path_, ": two columns are named '", column, "'; rename one");
  return static_cast<size_t>(found - header_.begin());
}

bool CsvTable::next(std::vector<std::string>& row) {
  if (!rows_.next(row)) {
    if (count_ == 0) refuse(path_, ": there is no line below the column names");
    return false;
  }
  if (row.size() != header_.size())
    refuse(path_, ": line ", line(), ": ", row.size(), " values, the first line names ",
           header_.size(), " columns");
  ++count_;
  return true;
}

}  // namespace data
