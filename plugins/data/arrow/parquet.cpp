// SPDX-License-Identifier: Apache-2.0
//
// Parquet, by Arrow's library, which throws in some places and returns statuses in others.
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <numeric>

#include "chunks.h"

namespace data {
namespace {

// How many of Parquet's columns a column of Arrow's is: a struct has one for each of its fields.
int leaves(const arrow::DataType& type) {
  if (type.num_fields() == 0) return 1;
  int count = 0;
  for (const auto& field : type.fields()) count += leaves(*field->type());
  return count;
}

class Parquet : public ChunkFile {
 public:
  explicit Parquet(const std::string& name) {
    path = name;
    guarded([&] {
      auto file = need(path, arrow::io::ReadableFile::Open(path));
      auto properties = parquet::default_arrow_reader_properties();
      properties.set_pre_buffer(false);
      parquet::arrow::FileReaderBuilder builder;
      need(path, builder.Open(std::move(file)));
      need(path, builder.properties(properties)->Build(&reader_));
      need(path, reader_->GetSchema(&schema));
      const auto metadata = reader_->parquet_reader()->metadata();
      for (int k = 0; k < metadata->num_row_groups(); ++k)
        rows.push_back(metadata->RowGroup(k)->num_rows());
    });
  }

  Arrays read(size_t chunk, const std::vector<int>& columns) override {
    Arrays read;
    guarded([&] {
      const auto table =
          need(path, reader_->ReadRowGroup(static_cast<int>(chunk), leaves_of(columns)));
      for (const auto& column : table->columns())
        read.push_back(need(path, arrow::Concatenate(column->chunks())));
    });
    if (read.size() != columns.size())
      refuse(path, ": the file is altered (columns are missing in a row group)");
    check_chunk(path, read, rows[chunk]);
    return read;
  }

 private:
  template <class Body>
  void guarded(Body&& body) const {
    try {
      body();
    } catch (const parquet::ParquetException& error) {
      refuse_file(path, arrow::Status::Invalid(error.what()));
    }
  }

  std::vector<int> leaves_of(const std::vector<int>& columns) const {
    std::vector<int> found;
    int at = 0, column = 0;
    for (const auto& field : schema->fields()) {
      const int count = leaves(*field->type());
      if (std::count(columns.begin(), columns.end(), column++)) {
        found.resize(found.size() + static_cast<size_t>(count));
        std::iota(found.end() - count, found.end(), at);
      }
      at += count;
    }
    return found;
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
};

}  // namespace

std::unique_ptr<ChunkFile> open_parquet(const std::string& path) {
  return std::make_unique<Parquet>(path);
}

}  // namespace data
