// SPDX-License-Identifier: Apache-2.0
//
// Files of columns, whose rows lie in chunks: row groups of Parquet, record batches of Arrow. A
// chunk is read when one of its rows is.
#pragma once

#include <arrow/api.h>

#include <memory>
#include <string>
#include <vector>

#include "../refuse.h"

namespace data {

using Arrays = std::vector<std::shared_ptr<arrow::Array>>;

class ChunkFile {
 public:
  virtual ~ChunkFile() = default;
  // Columns of a chunk by their numbers in the schema, which rise. Throws Error that names the
  // file. [one thread at a time]
  virtual Arrays read(size_t chunk, const std::vector<int>& columns) = 0;

  std::string path;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<int64_t> rows;  // of each chunk
};

// A file of Parquet, or of Arrow's (Feather) or its stream, known by its bytes. Throws Error that
// names it for any other, and for one that is cut short or altered.
std::unique_ptr<ChunkFile> open_chunks(const std::string& path);

// The parts of it. REQUIRES: the file begins as such files do.
std::unique_ptr<ChunkFile> open_parquet(const std::string& path);
std::unique_ptr<ChunkFile> open_arrow_file(const std::string& path);
std::unique_ptr<ChunkFile> open_arrow_stream(const std::string& path);

// Throws Error that names the file.
[[noreturn]] void refuse_file(const std::string& path, const arrow::Status& status);
inline void need(const std::string& path, const arrow::Status& status) {
  if (!status.ok()) refuse_file(path, status);
}
template <class T>
T need(const std::string& path, arrow::Result<T> result) {
  if (!result.ok()) refuse_file(path, result.status());
  return std::move(result).ValueUnsafe();
}

// Throws Error unless a chunk has what the file says of it, and holds together inside.
void check_chunk(const std::string& path, const Arrays& columns, int64_t rows);

}  // namespace data
