// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

namespace data {

Rows::Rows(std::vector<Column> columns, int64_t count) : columns_(std::move(columns)) {
  samples = count, slow = false;
  for (const Column& column : columns_) {
    fields.push_back(column.field);
    slow |= column.from->in_file();
  }
}

void Rows::read(const int64_t* wanted, int64_t n, void* const* to) const {
  for (size_t f = 0; f < columns_.size(); ++f) {
    const Column& column = columns_[f];
    auto* at = static_cast<std::byte*>(to[f]);
    for (int64_t i = 0; at && i < n; ++i, at += column.bytes)
      column.from->read(at, column.bytes,
                        column.offset + static_cast<uint64_t>(wanted[i]) * column.stride);
  }
}

}  // namespace data
