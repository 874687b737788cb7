// SPDX-License-Identifier: Apache-2.0
//
// Samples of one size at equal distances in bytes: arrays, .npy, tokens, MNIST and CIFAR.
#pragma once

#include "data/bytes.h"
#include "data/dataset.h"
#include "store/stored.h"

namespace orrery {

// Sample i of a column begins at byte offset + i * stride. Of tokens the stride is one token, so
// that samples overlap; y is x one token later.
struct Column {
  DataField field;
  Bytes bytes;
  Elements elements;
  uint64_t offset = 0, stride = 0;
};

class Columns : public Dataset {
 public:
  // REQUIRES: the last sample of every column ends inside of its bytes.
  Columns(std::vector<Column> columns, int64_t samples, int64_t window = 0,
          std::shared_ptr<const Tokenizer> tokenizer = {});
  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override;
  bool slow() const override;

 private:
  std::vector<Column> columns_;
};

// Windows of `length` tokens as fields x and y, of `count` tokens that begin at `offset`. Throws
// Error if there are too few; `name` and `unit` are what it calls the tokens.
DatasetPtr windows_of(const Bytes& bytes, const Elements& elements, uint64_t offset, int64_t count,
                      int64_t length, const std::string& name, const std::string& unit,
                      std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace orrery
