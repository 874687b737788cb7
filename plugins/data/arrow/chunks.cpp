// SPDX-License-Identifier: Apache-2.0
#include "chunks.h"

#include <array>
#include <cstring>

#include "../bytes.h"
#include "../formats.h"

namespace data {

std::unique_ptr<ChunkFile> open_chunks(const std::string& path) {
  const BytesPtr file = Bytes::open(path);
  std::array<char, 8> first{};
  file->read(first.data(), std::min<uint64_t>(first.size(), file->size()), 0);
  const auto begins = [&](std::string_view text) {
    return std::string_view(first.data(), text.size()) == text;
  };
  if (begins("PAR1")) return open_parquet(path);
  if (begins("PARE")) refuse(path, ": it is encrypted Parquet; write it without encryption");
  if (begins("ARROW1")) return open_arrow_file(path);
  if (begins("FEA1"))
    refuse(path, ": it is a Feather file of version 1; write it again, by pyarrow or pandas");
  if (begins("\xff\xff\xff\xff")) return open_arrow_stream(path);
  refuse_formats(*file, "Parquet or Arrow");
  refuse(path, ": it is neither Parquet nor Arrow: such a file begins with PAR1, ARROW1 or, of a ",
         "stream, four bytes 0xff");
}

void refuse_file(const std::string& path, const arrow::Status& status) {
  if (status.IsOutOfMemory()) fail(ORR_FAILED, path, ": ", status.message());
  refuse(path, ": the file is cut short or altered (", status.message(),
         "); restore it from a copy");
}

void check_chunk(const std::string& path, const Arrays& columns, int64_t rows) {
  for (const auto& column : columns) {
    if (column->length() != rows)
      refuse(path, ": the file is altered (a column has ", column->length(), " rows in a chunk of ",
             rows, "); restore it from a copy");
    need(path, column->ValidateFull());
  }
}

}  // namespace data
