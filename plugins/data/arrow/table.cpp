// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <arrow/util/byte_size.h>

#include <algorithm>

namespace data {
namespace {

std::string names_of(const arrow::Schema& schema) {
  std::string text;
  for (const std::string& name : schema.field_names()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

ColumnTable::ColumnTable(const std::vector<std::string>& paths,
                         const std::vector<std::string>& columns, int64_t room)
    : room_(room) {
  for (const std::string& path : paths) add_file(path, columns);
  if (rows() == 0) refuse(paths[0], ": there are no rows");
}

void ColumnTable::add_file(const std::string& path, const std::vector<std::string>& columns) {
  auto file = open_chunks(path);
  std::vector<int> wanted;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::vector<int> found = file->schema->GetAllFieldIndices(columns[i]);
    if (found.empty())
      refuse(path, ": there is no column '", columns[i], "'; it has ", names_of(*file->schema));
    if (found.size() > 1) refuse(path, ": ", found.size(), " columns are named '", columns[i], "'");
    const auto& column = file->schema->field(found[0]);
    if (files_.empty()) columns_.push_back(column);
    if (!column->type()->Equals(columns_[i]->type()))
      refuse(path, ": column '", columns[i], "' is ", column->type()->ToString(), ", in ",
             files_[0]->path, " ", columns_[i]->type()->ToString(), ": write both alike");
    wanted.push_back(found[0]);
  }
  for (size_t k = 0; k < file->rows.size(); ++k) {
    int64_t end = 0;
    if (file->rows[k] < 0 || __builtin_add_overflow(rows(), file->rows[k], &end))
      refuse(path, ": the file is altered (", file->rows[k], " rows); restore it from a copy");
    chunks_.push_back({files_.size(), k});
    ends_.push_back(end);
  }
  files_.push_back(std::move(file));
  wanted_.push_back(std::move(wanted));
}

RowPlace ColumnTable::place(int64_t row) const {
  const auto chunk =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
  return {chunk, row - (chunk ? ends_[chunk - 1] : 0)};
}

std::string ColumnTable::name(const RowPlace& place) const {
  const Chunk& chunk = chunks_[place.chunk];
  int64_t row = place.row + 1;
  for (size_t k = 0; k < chunk.number; ++k) row += files_[chunk.file]->rows[k];
  return files_[chunk.file]->path + ": row " + std::to_string(row);
}

std::shared_ptr<const Arrays> ColumnTable::read(size_t number) const {
  const Chunk& chunk = chunks_[number];
  const std::vector<int>& wanted = wanted_[chunk.file];
  std::vector<int> rising = wanted;
  std::sort(rising.begin(), rising.end());
  rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
  const Arrays read = files_[chunk.file]->read(chunk.number, rising);
  Arrays columns;
  for (const int column : wanted) {
    const auto at = std::lower_bound(rising.begin(), rising.end(), column) - rising.begin();
    std::shared_ptr<arrow::Array> stored = read[static_cast<size_t>(at)];
    while (stored->type_id() == arrow::Type::EXTENSION)
      stored = static_cast<const arrow::ExtensionArray&>(*stored).storage();
    columns.push_back(std::move(stored));
  }
  return std::make_shared<const Arrays>(std::move(columns));
}

std::shared_ptr<const Arrays> ColumnTable::chunk(size_t number) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(number); found != kept_.end()) {
    ages_.splice(ages_.begin(), ages_, found->second.age);
    return found->second.arrays;
  }
  std::shared_ptr<const Arrays> arrays = read(number);
  int64_t bytes = 0;
  for (const auto& column : *arrays) bytes += arrow::util::TotalBufferSize(*column);
  while (!ages_.empty() && bytes_ + bytes > room_) {
    const auto oldest = kept_.find(ages_.back());
    bytes_ -= oldest->second.bytes;
    kept_.erase(oldest);
    ages_.pop_back();
  }
  ages_.push_front(number);
  kept_[number] = {arrays, bytes, ages_.begin()};
  bytes_ += bytes;
  return arrays;
}

}  // namespace data
