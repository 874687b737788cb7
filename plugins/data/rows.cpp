// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <algorithm>
#include <numeric>

namespace data {
namespace {

void read_text(const Column& column, size_t sample, std::byte* to) {
  const uint64_t begin = sample ? column.ends[sample - 1] : 0;
  const size_t size = column.ends[sample] - begin;
  column.from->read(to, size, begin);
  std::fill_n(to + size, column.bytes - size, std::byte{0});
}

}  // namespace

Rows::Rows(std::vector<Column> columns, int64_t count) : columns_(std::move(columns)) {
  samples = count, slow = false;
  for (const Column& column : columns_) {
    fields.push_back(column.field);
    slow |= column.from->in_file();
  }
}

std::vector<int64_t> by_row(const int64_t* samples, int64_t n) {
  std::vector<int64_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  std::sort(places.begin(), places.end(),
            [samples](int64_t a, int64_t b) { return samples[a] < samples[b]; });
  return places;
}

void Rows::read(const int64_t* wanted, int64_t n, void* const* to) const {
  for (size_t f = 0; f < columns_.size(); ++f) {
    const Column& column = columns_[f];
    auto* at = static_cast<std::byte*>(to[f]);
    for (int64_t i = 0; at && i < n; ++i, at += column.bytes) {
      const auto sample = static_cast<size_t>(wanted[i]);
      if (column.ends.empty())
        column.from->read(at, column.bytes, column.offset + sample * column.stride);
      else
        read_text(column, sample, at);
    }
  }
}

}  // namespace data
