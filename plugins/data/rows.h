// SPDX-License-Identifier: Apache-2.0
//
// Samples of one size at equal distances in bytes, and texts that are filled up to one size.
#pragma once

#include <orrery/sdk/data.hpp>

#include "bytes.h"

namespace data {

// Sample i of a column is `bytes` bytes from offset + i * stride on. Of texts it is what lies
// between the ends of the text before it and its own, with zeros behind.
struct Column {
  orr::DataField field;
  BytesPtr from;
  uint64_t offset, stride;
  size_t bytes;
  std::vector<uint64_t> ends = {};
};

class Rows : public orr::Dataset {
 public:
  // REQUIRES: the last sample of every column ends inside of its bytes.
  Rows(std::vector<Column> columns, int64_t samples);
  void read(const int64_t* samples, int64_t n, void* const* to) const override;

 private:
  std::vector<Column> columns_;
};

// The places 0 to n - 1 of a batch, by the samples that it has there.
std::vector<int64_t> by_row(const int64_t* samples, int64_t n);

}  // namespace data
