// SPDX-License-Identifier: Apache-2.0
//
// The rows of several files as those of one table, of which chunks are kept in memory while there
// is room: those that were read last.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "chunks.h"

namespace data {

// A row of a chunk of a file.
struct RowPlace {
  size_t chunk;  // of the table
  int64_t row;   // in the chunk
};

class ColumnTable {
 public:
  // Of all files the columns with these names, `room` bytes of them at most, and one chunk. Throws
  // Error if a file lacks one of them, or has it of another type.
  ColumnTable(const std::vector<std::string>& paths, const std::vector<std::string>& columns,
              int64_t room);

  int64_t rows() const { return ends_.empty() ? 0 : ends_.back(); }
  size_t chunks() const { return ends_.size(); }
  const std::shared_ptr<arrow::Field>& column(size_t number) const { return columns_[number]; }
  // Of the first file.
  const arrow::Schema& schema() const { return *files_[0]->schema; }
  const std::string& path() const { return files_[0]->path; }

  // REQUIRES: 0 <= row < rows().
  RowPlace place(int64_t row) const;
  // The columns, as they were asked for. [any thread]
  std::shared_ptr<const Arrays> chunk(size_t number) const;
  // "a.parquet: row 5", from 1.
  std::string name(const RowPlace& place) const;

 private:
  struct Chunk {
    size_t file, number;
  };
  struct Kept {
    std::shared_ptr<const Arrays> arrays;
    int64_t bytes;
    std::list<size_t>::iterator age;
  };
  void add_file(const std::string& path, const std::vector<std::string>& columns);
  std::shared_ptr<const Arrays> read(size_t number) const;

  std::vector<std::unique_ptr<ChunkFile>> files_;
  std::vector<std::vector<int>> wanted_;  // of each file, in the order that was asked for
  std::vector<std::shared_ptr<arrow::Field>> columns_;
  std::vector<Chunk> chunks_;
  std::vector<int64_t> ends_;  // of the rows of each chunk
  int64_t room_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<size_t, Kept> kept_;
  mutable std::list<size_t> ages_;  // the one that was read last at the front
  mutable int64_t bytes_ = 0;
};

}  // namespace data
